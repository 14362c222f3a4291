// How a communicator ends: aborted, revoked, finalized, destroyed; and what may still be made out of it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/communicator.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Long, since that thread may be stopped, or its core taken: it needs a few milliseconds of it.
constexpr std::chrono::seconds kToLeave{10};

Error stillInside(const char* function, int rank) {
  return {
      ncclSystemError,
      fmt::format("{}: rank {}'s thread inside the operation did not leave it within {} s. Its buffers may "
                  "still be in use; only ncclCommAbort may follow",
                  function, rank, kToLeave.count())};
}

}  // namespace

std::chrono::milliseconds Communicator::endLimit() const {
  constexpr auto kAtMost = std::chrono::seconds(60);
  return settings_.stall_timeout.count() != 0 ? settings_.stall_timeout : kAtMost;
}

Communicator::~Communicator() {
  process_.forget(*this);
  part(endLimit());
  if (gpu_work_ == nullptr) return;
  registrations_.clear();
  leaveRemains();
}

void Communicator::endWithProcess() noexcept {
  constexpr auto kAtMost = std::chrono::seconds(1);
  if (!busy() && inside_.load(std::memory_order_acquire) == 0) part(kAtMost);
}

void Communicator::part(std::chrono::milliseconds limit) {
  if (gpu_work_ != nullptr) endGpu(limit);
  if (wiring_.network != nullptr && !fault_.tripped()) drainNetwork(limit);
  auto expected = RankStatus::State::active;
  wiring_.board[rank_].state.compare_exchange_strong(expected, RankStatus::State::left,
                                                     std::memory_order_release, std::memory_order_relaxed);
  if (network_watch_ == nullptr) return;
  wiring_.control->announce(process_.watcher());
  network_watch_.reset();
  control_watch_.reset();
  wiring_.control->flush();
}

/// Slots that callers left in the links reach the hosts of the peers. Nothing is sent to those that have
/// ended. Of one that has, no news may come: then it is asked for, one peer after the other.
void Communicator::drainNetwork(std::chrono::milliseconds limit) {
  using std::chrono::steady_clock;
  const auto start = steady_clock::now();
  std::vector<bool> has_vanished(wiring_.peers.size());
  const auto receives = [&](const PeerInfo& peer) {
    return !std::ranges::binary_search(wiring_.locals, peer.rank) && !wiring_.control->isLost(peer.rank) &&
           !has_vanished[static_cast<std::size_t>(peer.rank)] &&
           wiring_.board[peer.rank].state.load(std::memory_order_acquire) != RankStatus::State::left;
  };
  auto asked = wiring_.peers.end();
  Vanishing vanishing(std::chrono::milliseconds(300));
  while (!fault_.tripped() && !wiring_.network->drain(steady_clock::now() + std::chrono::milliseconds(100))) {
    if (std::ranges::none_of(wiring_.peers, receives)) {
      return around_.warn(
          "what this rank sent last was received by nobody: the ranks of other hosts have ended");
    }
    const auto waited = steady_clock::now() - start;
    if (wiring_.control->hasGaps()) {
      if (asked == wiring_.peers.end()) asked = std::ranges::find_if(wiring_.peers, receives);
      if (asked == wiring_.peers.end()) continue;  // the last one has left just now
      const auto answer = vanishing.hasVanished(asked->listener, waited);
      if (answer == true) {
        has_vanished[static_cast<std::size_t>(asked->rank)] = true;
        wiring_.network->retire(asked->rank);
      }
      if (answer) {
        asked = std::find_if(asked + 1, wiring_.peers.end(), receives);
        vanishing = Vanishing(waited);
      }
    }
    if (waited < limit) continue;
    around_.warn(
        fmt::format("what this rank sent last has not reached its peers within {} s; they may be stopped, or "
                    "their hosts unreachable",
                    std::chrono::duration<double>(limit).count()));
    return;
  }
}

void Communicator::requireAllReceived() {
  if (gpu_work_ != nullptr) gpu_work_->adoptReset();
  if (fault_.tripped()) {
    // On a GPU the Watcher may have found it when no call was there to return it.
    if (gpu_work_ != nullptr && !is_fault_told_.load(std::memory_order_relaxed)) throw faultError();
    return;
  }
  const auto refuse = [this](int peer, const Descriptor& descriptor) {
    throw Error(
        ncclInvalidUsage,
        fmt::format("rank {} of {}: the communicator ends, but rank {} sent data for {}, which no call "
                    "of this rank received. All ranks must make the same calls in the same order",
                    rank_, nranks_, peer, describe(descriptor)));
  };
  if (gpu_work_ != nullptr) {
    endGpu(endLimit());
    gpu_work_->adoptFault();
    if (fault_.tripped()) throw faultError();  // nobody was in a call to hear of it
    if (const auto left = wiring_.gpu->unreceived()) refuse(left->first, left->second);
    return;
  }
  for (const LinkRow& lane : wiring_.lanes) {
    for (const LinkView& link : lane.inbound) {
      if (link.peer < 0) continue;
      const std::uint64_t next = link.released->value.load(std::memory_order_relaxed);
      if (link.posted->value.load(std::memory_order_acquire) == next) continue;
      refuse(link.peer, link.header(next).descriptor);
    }
  }
  requireAllDelivered();
}

/// A receiver writes its last credits before it shows that it has left. Between hosts the two come on
/// different ways, and credits may be lost with a connection: nothing is said there.
void Communicator::requireAllDelivered() const {
  for (const int rank : wiring_.locals) {
    if (wiring_.board[rank].state.load(std::memory_order_acquire) != RankStatus::State::left) continue;
    std::uint64_t bytes = 0;
    const Descriptor* first = nullptr;
    for (const LinkRow& lane : wiring_.lanes) {
      const LinkView& link = lane.outbound[static_cast<std::size_t>(rank)];
      if (link.peer < 0) continue;
      const std::uint64_t posted = link.posted->value.load(std::memory_order_relaxed);
      std::uint64_t next = link.released->value.load(std::memory_order_acquire);
      if (next != posted && first == nullptr) first = &link.header(next).descriptor;
      for (; next != posted; ++next) bytes += link.header(next).bytes;
    }
    if (first == nullptr) continue;
    throw Error(
        ncclRemoteError,
        fmt::format(
            "rank {} of {}: the communicator ends, but {} bytes that this rank sent for {} were never "
            "received: {} has left the communicator. All ranks must make the same calls in the same "
            "order",
            rank_, nranks_, bytes, describe(*first),
            describe(wiring_.peers[static_cast<std::size_t>(rank)])));
  }
}

bool Communicator::abort() {
  aborted_.store(true, std::memory_order_release);
  return endOperations("aborted the communicator");
}

void Communicator::revoke() {
  if (revoked_.exchange(true, std::memory_order_acq_rel)) {
    throw Error(ncclInvalidArgument, "ncclCommRevoke: the communicator is revoked already");
  }
  if (endOperations("revoked the communicator")) return;
  throw stillInside("ncclCommRevoke", rank_);
}

void Communicator::endOperations() {
  if (endOperations("makes a smaller communicator out of this one (NCCL_SHRINK_ABORT)")) return;
  throw stillInside("ncclCommShrink", rank_);
}

bool Communicator::endOperations(const std::string& words) {
  const PeerInfo& self = wiring_.peers[static_cast<std::size_t>(rank_)];
  ended_operations_.store(true, std::memory_order_release);
  is_fault_told_.store(true, std::memory_order_relaxed);
  fail(ncclRemoteError, describe(self) + " " + words);
  const auto end = std::chrono::steady_clock::now() + kToLeave;
  if (gpu_work_ != nullptr && !finishGpu(kToLeave)) return false;
  const auto isInside = [this] { return busy() || inside_.load(std::memory_order_acquire) != 0; };
  while (isInside() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return !isInside();
}

void Communicator::requireMakesOthers(const char* function) const {
  if (isFinalized()) {
    throw Error(ncclInvalidUsage, fmt::format("{}: the communicator is finalized", function));
  }
  if (gpu_work_ != nullptr) gpu_work_->adoptReset();
  if (fault_.tripped() && !ended_operations_.load(std::memory_order_acquire)) throw faultError();
}

void Communicator::requireMeeting(const char* function, const std::vector<int>& ranks) const {
  if (aborted_.load(std::memory_order_acquire)) {
    throw Error(ncclRemoteError, fmt::format("{}: rank {} aborted the communicator", function, rank_));
  }
  requireMakesOthers(function);
  // What this rank ended itself fails on all.
  const bool ended = ended_operations_.load(std::memory_order_acquire);
  meetings_.requireAlive(ranks, ended ? Meetings::Faults::accepted : Meetings::Faults::refused);
}

void Communicator::finalize() {
  if (revoked_.load(std::memory_order_acquire)) {
    throw Error(ncclInvalidUsage, "ncclCommFinalize: the communicator is revoked. Call ncclCommDestroy");
  }
  if (gpu_work_ != nullptr && wiring_.gpu->isLost()) {
    gpu_work_->adoptReset();
    throw faultError();
  }
  const Occupancy occupancy = occupy();
  if (finalized_.exchange(true, std::memory_order_acq_rel)) {
    throw Error(ncclInvalidArgument, "ncclCommFinalize: the communicator is finalized already");
  }
}

}  // namespace tutti
