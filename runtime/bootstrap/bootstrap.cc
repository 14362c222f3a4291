#include "runtime/bootstrap/bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/bootstrap/dial.h"
#include "runtime/bootstrap/messages.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A value in a Gather message: this, then its bytes. In a Gathered message the values are in the order of
/// ranks.
struct Entry {
  std::int32_t rank = 0;
  std::uint32_t bytes = 0;
};

/// Takes a value off the front of `values`; false where they are cut off.
bool takeValue(std::span<const std::uint8_t>& values, Entry& entry, std::span<const std::uint8_t>& value) {
  if (values.size() < sizeof(entry)) return false;
  std::memcpy(&entry, values.data(), sizeof(entry));
  values = values.subspan(sizeof(entry));
  if (values.size() < entry.bytes) return false;
  value = values.first(entry.bytes);
  values = values.subspan(entry.bytes);
  return true;
}

void append(Bytes& values, const Entry& entry, std::span<const std::uint8_t> value) {
  values.insert(values.end(), bytesOf(entry).begin(), bytesOf(entry).end());
  values.insert(values.end(), value.begin(), value.end());
}

}  // namespace

Bootstrap::Bootstrap(const UniqueId& id, int nranks, int rank, const NetworkSettings& network,
                     Deadline deadline, const std::function<void()>& check)
    : endpoint_(toText(id.address)),
      nranks_(nranks),
      rank_(rank),
      deadline_(deadline),
      joined_(joinTree({.id = id,
                        .nranks = nranks,
                        .rank = rank,
                        .network = network,
                        .deadline = deadline,
                        .check = check})) {}

std::vector<Bytes> Bootstrap::allGatherBytes(std::span<const std::uint8_t> mine) {
  try {
    std::vector<Bytes> all = gather(mine);
    is_whole_ = true;
    return all;
  } catch (const Error& error) {
    joined_.tree.flood(error);
    throw;
  }
}

/// Up: every rank sends one message with the values of all ranks below it. Down: rank 0's message with the
/// values of all. 2 log16(n) hops.
std::vector<Bytes> Bootstrap::gather(std::span<const std::uint8_t> mine) {
  const auto children = treeChildren(rank_, nranks_);
  Bytes entries;
  append(entries, {rank_, static_cast<std::uint32_t>(mine.size())}, mine);
  for (const int child : children) {
    const Bytes received = await(child, MessageType::gather);
    const auto payload = payloadOf(received);
    entries.insert(entries.end(), payload.begin(), payload.end());
  }
  if (entries.size() >= SecureChannel::kMaxMessage) {
    throw Error(ncclInternalError, fmt::format("rank {}: {} bytes of values are too many for one message",
                                               rank_, entries.size()));
  }
  Bytes down;
  if (rank_ == 0) {
    down = message(MessageType::gathered, sorted(entries));
  } else {
    joined_.tree.send(treeParent(rank_), message(MessageType::gather, entries));
    down = await(treeParent(rank_), MessageType::gathered);
  }
  for (const int child : children) joined_.tree.send(child, down);
  flush();
  return valuesOf(payloadOf(down));
}

Bytes Bootstrap::await(int neighbour, MessageType type) {
  for (;;) {
    if (auto received = joined_.tree.take(neighbour)) {
      if (typeOf(*received) == type) return std::move(*received);
      throw Error(ncclInternalError, fmt::format("{} sent an unknown message to rank {}",
                                                 joined_.tree.describe(neighbour), rank_));
    }
    joined_.tree.requirePresent(neighbour);
    requireTime(neighbour);
    std::vector<pollfd> fds;
    if (!is_whole_) joined_.reception.addTo(fds);
    joined_.tree.addTo(fds);
    pollFor(fds, milliseconds(100));
    if (!is_whole_) hearNews();
    joined_.tree.pump();
  }
}

/// The rendezvous may call with bad news while the tree above this rank is not complete. Later callers want
/// to be heard by whoever takes the listener.
void Bootstrap::hearNews() {
  for (const Guest& guest : joined_.reception.attend()) {
    if (typeOf(guest.greeting) == MessageType::failed) throw readFailed(payloadOf(guest.greeting));
  }
}

void Bootstrap::requireTime(int neighbour) const {
  if (Clock::now() < deadline_) return;
  throw Error(
      ncclSystemError,
      fmt::format("rank {}: {} did not answer in time (TUTTI_INIT_TIMEOUT), which may be the fault of "
                  "a rank behind it. The rendezvous was at {}",
                  rank_, joined_.tree.describe(neighbour), endpoint_));
}

Bytes Bootstrap::sorted(std::span<const std::uint8_t> entries) const {
  std::vector<std::span<const std::uint8_t>> values(static_cast<std::size_t>(nranks_));
  std::vector<bool> seen(static_cast<std::size_t>(nranks_), false);
  std::size_t count = 0;
  for (; !entries.empty(); ++count) {
    Entry entry;
    std::span<const std::uint8_t> value;
    if (!takeValue(entries, entry, value))
      throw Error(ncclInternalError, "rank 0 got a value that is cut off");
    const auto rank = static_cast<std::size_t>(entry.rank);
    if (entry.rank < 0 || entry.rank >= nranks_ || seen[rank]) {
      throw Error(ncclInternalError,
                  fmt::format("rank 0 got a value of rank {} of {} that is not due", entry.rank, nranks_));
    }
    seen[rank] = true;
    values[rank] = value;
  }
  if (count != seen.size())
    throw Error(ncclInternalError, fmt::format("rank 0 got values of {} ranks of {}", count, nranks_));
  Bytes all;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    append(all, {static_cast<std::int32_t>(rank), static_cast<std::uint32_t>(values[rank].size())},
           values[rank]);
  }
  return all;
}

std::vector<Bytes> Bootstrap::valuesOf(std::span<const std::uint8_t> all) const {
  std::vector<Bytes> values;
  while (!all.empty()) {
    Entry entry;
    std::span<const std::uint8_t> value;
    if (!takeValue(all, entry, value) || entry.rank != std::ssize(values)) break;
    values.emplace_back(value.begin(), value.end());
  }
  if (all.empty() && std::ssize(values) == nranks_) return values;
  throw Error(ncclInternalError,
              fmt::format("rank {} got values of {} ranks of {}, then {} bytes that are none", rank_,
                          values.size(), nranks_, all.size()));
}

void Bootstrap::requireSize(const Bytes& value, std::size_t bytes, std::size_t rank) {
  if (value.size() == bytes) return;
  const std::string text =
      fmt::format("rank {} gave {} bytes where {} were expected", rank, value.size(), bytes);
  joined_.tree.flood(Error(ncclInternalError, text));
  throw Error(ncclInternalError, text);
}

/// What was sent is gone before this rank turns to other work: those below wait for it.
void Bootstrap::flush() {
  while (joined_.tree.wantsToWrite()) {
    if (Clock::now() >= deadline_) {
      throw Error(ncclSystemError,
                  fmt::format("rank {}: a rank below it does not read (TUTTI_INIT_TIMEOUT)", rank_));
    }
    joined_.tree.write();
    if (!joined_.tree.wantsToWrite()) return;
    std::vector<pollfd> fds;
    joined_.tree.addTo(fds);
    pollFor(fds, milliseconds(100));
  }
}

void Bootstrap::fail(const std::string& text) noexcept { joined_.tree.flood(Error(ncclRemoteError, text)); }

void Bootstrap::leave() noexcept {
  joined_.tree.leave();
  joined_.reception = Reception();
}

}  // namespace tutti
