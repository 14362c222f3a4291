#include "runtime/bootstrap/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "transports/socket_address.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxText = 16384;  ///< of a failure; what is longer is cut

void append(Bytes& to, std::span<const std::uint8_t> more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

Bytes message(MessageType type, std::span<const std::uint8_t> payload) {
  Bytes bytes;
  bytes.reserve(payload.size() + 1);
  bytes.push_back(static_cast<std::uint8_t>(type));
  append(bytes, payload);
  return bytes;
}

Bytes failedMessage(const Error& error) {
  const auto* const failure = dynamic_cast<const BootstrapError*>(&error);
  const std::string text = error.what();
  Bytes bytes = message(MessageType::failed);
  bytes.push_back(static_cast<std::uint8_t>(error.code()));
  bytes.push_back(failure != nullptr && failure->lacksCause() ? 1 : 0);
  append(bytes, bytesOf(text).first(std::min(text.size(), kMaxText)));
  return bytes;
}

BootstrapError readFailed(std::span<const std::uint8_t> payload) {
  if (payload.size() < 2) return {ncclInternalError, "another rank failed and did not say why"};
  return {static_cast<ncclResult_t>(payload[0]), std::string(payload.begin() + 2, payload.end()),
          payload[1] != 0};
}

Bytes tableMessage(const TableMessage& header, const std::vector<RankAddress>& table) {
  Bytes bytes = message(MessageType::table, bytesOf(header));
  append(bytes, {reinterpret_cast<const std::uint8_t*>(table.data()), table.size() * sizeof(RankAddress)});
  return bytes;
}

bool readTable(std::span<const std::uint8_t> payload, TableMessage& header, std::vector<RankAddress>& table) {
  if (payload.size() < sizeof(header)) return false;
  std::memcpy(&header, payload.data(), sizeof(header));
  const auto entries = payload.subspan(sizeof(header));
  if (header.nranks < 1 || entries.size() != static_cast<std::size_t>(header.nranks) * sizeof(RankAddress)) {
    return false;
  }
  table.resize(static_cast<std::size_t>(header.nranks));
  std::memcpy(table.data(), entries.data(), entries.size());
  for (RankAddress& entry : table) entry.host.back() = '\0';
  return true;
}

std::string describeRank(int rank, const RankAddress& where) {
  return fmt::format("rank {} (pid {} on {})", rank, where.pid, where.host.data());
}

const char* hintAtFirewall(const NetAddress& address) {
  return isLoopback(address) ? "" : "; or a firewall blocks that port: TUTTI_PORT_RANGE chooses the ports";
}

}  // namespace tutti
