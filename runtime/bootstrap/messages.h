// What ranks and the rendezvous say to each other, inside a SecureChannel.
//
//   rank ─► rendezvous   Join        who it is and where it listens
//   rendezvous ─► rank   Joined      wait at your listener
//   parent ─► child      Table       everyone; the rendezvous is the parent of rank 0
//   child ─► parent      Ready       all ranks below it are connected
//   child ─► parent      Gather      values of the ranks below it and its own
//   parent ─► child      Gathered    the values of all ranks
//   anyone ─► anyone     Failed      the first failure, which ends the init of all ranks
//   neighbour            Leave       this rank is complete: its end is no failure
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/core/net_address.h"
#include "transports/secure_channel.h"
#include "tutti/error.h"

namespace tutti {

enum class MessageType : std::uint8_t {
  join = 1,
  gather = 2,
  failed = 3,
  leave = 4,
  gathered = 5,
  joined = 6,
  table = 7,
  ready = 8
};

/// Types from here on are of messages that a complete rank sends, over channels that outlive the bootstrap.
inline constexpr std::uint8_t kFirstLaterType = 32;

/// Raised with every change of the messages, of PeerInfo or of the memory layout of links and board.
inline constexpr std::uint32_t kProtocolVersion = 5;

/// Stands for the rendezvous where a rank is expected: rank 0's parent.
inline constexpr std::int32_t kRendezvous = -1;

/// Where a rank is. `pid` and `host` are for messages to people.
struct RankAddress {
  NetAddress address;  ///< of its listener
  std::int32_t pid = 0;
  std::array<char, 64> host{};  ///< zero-terminated
};
static_assert(std::is_trivially_copyable_v<RankAddress> && sizeof(RankAddress) == 92);

/// `protocol_version`, `nranks`, `rank` and `where.pid` stay where they are in every later version.
struct JoinMessage {
  std::uint32_t protocol_version = kProtocolVersion;
  std::int32_t nranks = 0;
  std::int32_t rank = 0;
  RankAddress where;
};

/// Followed by one RankAddress per rank.
struct TableMessage {
  std::int32_t from = kRendezvous;
  std::int32_t to = 0;
  std::int32_t nranks = 0;
  Secret communicator_secret{};  ///< random; the one of the id may serve several communicators
};

/// A type byte, then the payload.
Bytes message(MessageType type, std::span<const std::uint8_t> payload = {});

/// A failure on the way into a communicator.
class BootstrapError : public Error {
 public:
  /// `lacks_cause`: another end has gone without a word, and why may be known elsewhere.
  BootstrapError(ncclResult_t code, const std::string& text, bool lacks_cause = false)
      : Error(code, text), lacks_cause_(lacks_cause) {}
  bool lacksCause() const noexcept { return lacks_cause_; }

 private:
  bool lacks_cause_;
};

/// A result code, whether its cause is missing, then the text.
Bytes failedMessage(const Error& error);
BootstrapError readFailed(std::span<const std::uint8_t> payload);

Bytes tableMessage(const TableMessage& header, const std::vector<RankAddress>& table);
/// False when the payload is no table.
bool readTable(std::span<const std::uint8_t> payload, TableMessage& header, std::vector<RankAddress>& table);

/// "rank 2 (pid 4711 on node7)".
std::string describeRank(int rank, const RankAddress& where);

/// Follows "Connection refused" in errors: a process that has gone is not all that it may mean between hosts.
const char* hintAtFirewall(const NetAddress& address);

template <class T>
std::span<const std::uint8_t> bytesOf(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)};
}

inline std::span<const std::uint8_t> bytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline MessageType typeOf(const Bytes& bytes) {
  return bytes.empty() ? MessageType{} : static_cast<MessageType>(bytes[0]);
}

inline std::span<const std::uint8_t> payloadOf(const Bytes& bytes) {
  return std::span(bytes).subspan(bytes.empty() ? 0 : 1);
}

}  // namespace tutti
