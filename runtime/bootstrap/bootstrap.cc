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

/// A value in a Gather message: whose it is, then its bytes.
using EntryRank = std::int32_t;

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

Bytes Bootstrap::gatherBytes(std::span<const std::uint8_t> mine) {
  try {
    Bytes all = gather(mine);
    is_whole_ = true;
    return all;
  } catch (const Error& error) {
    joined_.tree.flood(error.code(), error.what());
    throw;
  }
}

/// Up: every rank sends one message with the values of all ranks below it. Down: rank 0's message with the
/// values of all. 2 log16(n) hops.
Bytes Bootstrap::gather(std::span<const std::uint8_t> mine) {
  const std::size_t entry_bytes = sizeof(EntryRank) + mine.size();
  if (entry_bytes * static_cast<std::size_t>(nranks_) >= SecureChannel::kMaxMessage) {
    throw Error(ncclInternalError, fmt::format("values of {} bytes of {} ranks are too many for one message",
                                               mine.size(), nranks_));
  }
  const auto children = treeChildren(rank_, nranks_);
  const EntryRank self = rank_;
  Bytes entries(bytesOf(self).begin(), bytesOf(self).end());
  entries.insert(entries.end(), mine.begin(), mine.end());
  for (const int child : children) {
    const Bytes received = await(child, MessageType::gather);
    addEntries(entries, payloadOf(received), entry_bytes, child);
  }
  Bytes down;
  if (rank_ == 0) {
    down = message(MessageType::gathered, sorted(entries, mine.size()));
  } else {
    joined_.tree.send(treeParent(rank_), message(MessageType::gather, entries));
    down = await(treeParent(rank_), MessageType::gathered);
  }
  for (const int child : children) joined_.tree.send(child, down);
  flush();
  down.erase(down.begin());
  if (down.size() == mine.size() * static_cast<std::size_t>(nranks_)) return down;
  throw Error(ncclInternalError,
              fmt::format("rank {} got {} bytes of all ranks where {} were expected", rank_, down.size(),
                          mine.size() * static_cast<std::size_t>(nranks_)));
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

void Bootstrap::addEntries(Bytes& entries, std::span<const std::uint8_t> more, std::size_t entry_bytes,
                           int neighbour) const {
  if (more.empty() || more.size() % entry_bytes != 0) {
    throw Error(ncclInternalError, fmt::format("{} sent {} bytes where values of {} bytes were expected",
                                               joined_.tree.describe(neighbour), more.size(), entry_bytes));
  }
  entries.insert(entries.end(), more.begin(), more.end());
}

Bytes Bootstrap::sorted(std::span<const std::uint8_t> entries, std::size_t value_bytes) const {
  const std::size_t entry_bytes = sizeof(EntryRank) + value_bytes;
  Bytes all(static_cast<std::size_t>(nranks_) * value_bytes);
  std::vector<bool> seen(static_cast<std::size_t>(nranks_), false);
  std::size_t count = 0;
  for (; !entries.empty(); entries = entries.subspan(entry_bytes), ++count) {
    EntryRank rank = 0;
    std::memcpy(&rank, entries.data(), sizeof(rank));
    if (rank < 0 || rank >= nranks_ || seen[static_cast<std::size_t>(rank)]) {
      throw Error(ncclInternalError,
                  fmt::format("rank 0 got a value of rank {} of {} that is not due", rank, nranks_));
    }
    seen[static_cast<std::size_t>(rank)] = true;
    const auto value = entries.subspan(sizeof(rank), value_bytes);
    std::ranges::copy(
        value, all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * value_bytes));
  }
  if (count == seen.size()) return all;
  throw Error(ncclInternalError, fmt::format("rank 0 got values of {} ranks of {}", count, nranks_));
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

void Bootstrap::fail(const std::string& text) noexcept { joined_.tree.flood(ncclRemoteError, text); }

void Bootstrap::leave() noexcept {
  joined_.tree.leave();
  joined_.reception = Reception();
}

}  // namespace tutti
