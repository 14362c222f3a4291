#include "runtime/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/control_plane.h"
#include "runtime/status_words.h"

namespace tutti {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr int kWarningGrowth = 6;                           ///< 10 s, 1 min, 6 min, ...
constexpr auto kLongWait = std::chrono::milliseconds(200);  ///< then ranks on other hosts are asked
constexpr auto kFreshCopies =
    std::chrono::milliseconds(500);                          ///< they have been asked, and answered, by then
constexpr auto kLastWords = std::chrono::milliseconds(250);  ///< what a lost rank sent has arrived by then

double inSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

std::optional<Error> failureOfPeers(const Wiring& wiring, int rank) {
  const std::vector<bool> dead = wiring.watch->dead();
  const PeerInfo* died = nullptr;
  for (const PeerInfo& peer : wiring.peers) {
    if (peer.rank == rank) continue;
    // Death is read before the status: what a dead rank wrote last is then all there.
    const bool is_gone = dead[static_cast<std::size_t>(peer.rank)] ||
                         (wiring.control != nullptr && wiring.control->isLost(peer.rank));
    const RankStatus& theirs = wiring.board[peer.rank];
    const auto state = theirs.state.load(std::memory_order_acquire);
    if (state == RankStatus::State::failed) {
      return Error(static_cast<ncclResult_t>(theirs.code), theirs.text.data());
    }
    if (is_gone && state != RankStatus::State::left) died = &peer;
  }
  if (died == nullptr) return std::nullopt;
  return Error(ncclRemoteError,
               fmt::format("{} is gone: its process has ended, or its host cannot be reached any more",
                           describe(*died)));
}

int silentRank(const Wiring& wiring) { return wiring.control != nullptr ? wiring.control->silentRank() : -1; }

std::string silentText(const Wiring& wiring) {
  const int silent = silentRank(wiring);
  if (silent < 0) return "";
  return fmt::format("; {} does not answer. Is that process stopped, or its host unreachable?",
                     describe(wiring.peers[static_cast<std::size_t>(silent)]));
}

void Monitor::lookFarther(nanoseconds waited) const {
  ControlPlane* control = around_.wiring.control.get();
  if (control != nullptr && waited >= kLongWait) control->ask(around_.watcher);
}

std::vector<bool> Monitor::deadRanks(nanoseconds waited) {
  std::vector<bool> dead = around_.wiring.watch->dead();
  const ControlPlane* control = around_.wiring.control.get();
  for (int rank = 0; control != nullptr && rank < around_.wiring.layout.nranks; ++rank) {
    if (!control->isLost(rank)) continue;
    if (seen_lost_.count() < 0) seen_lost_ = waited;
    if (waited - seen_lost_ >= kLastWords) dead[static_cast<std::size_t>(rank)] = true;
  }
  return dead;
}

const char* Monitor::endText(int rank) const {
  // Only of ranks that share memory, the kernel tells; of others on the same kernel, too, it is a connection
  // that ended.
  return isLocal(rank) ? "died (its process has ended)"
                       : "is gone (its process has ended, or its host cannot be reached any more)";
}

bool Monitor::adoptFault() {
  for (const PeerInfo& peer : around_.wiring.peers) {
    const RankStatus& theirs = status(peer.rank);
    if (peer.rank == around_.rank ||
        theirs.state.load(std::memory_order_acquire) != RankStatus::State::failed)
      continue;
    around_.fault.trip(static_cast<ncclResult_t>(theirs.code), theirs.text.data());
    return true;
  }
  return false;
}

bool Monitor::isLending(int peer) {
  const auto state = status(peer).state.load(std::memory_order_seq_cst);
  if (state == RankStatus::State::active) return true;
  if (!adoptFault()) {
    around_.fault.trip(ncclRemoteError, fmt::format("{} left the communicator before {} was complete there",
                                                    who(peer), describe(descriptor_)));
  }
  return false;
}

std::string Monitor::who(int rank) const {
  return describe(around_.wiring.peers[static_cast<std::size_t>(rank)]);
}

std::string Monitor::stoppedText() const {
  std::string result;
  for (const int rank : around_.wiring.watch->stopped()) result += fmt::format("; {} is stopped", who(rank));
  return result;
}

void Monitor::differs(int peer, const Descriptor& theirs) {
  if (isTransfer(descriptor_) && isTransfer(theirs)) {
    around_.fault.trip(
        ncclInvalidUsage,
        fmt::format("{} sends {} bytes, but {} waits to receive {} bytes from it. The sizes of "
                    "a Send and its Recv must be equal, and both sides must post theirs in the "
                    "same order",
                    who(peer), theirs.count, who(around_.rank), descriptor_.count));
    return;
  }
  tripMismatch(describe(descriptor_), peer, describe(theirs, numberOf(status(peer), theirs)));
}

bool Monitor::tryDiffers(int peer, const Descriptor& theirs, nanoseconds /*ago*/) {
  differs(peer, theirs);
  return true;
}

void Monitor::tripMismatch(const std::string& mine, int peer, const std::string& theirs) {
  around_.fault.trip(
      ncclInvalidUsage,
      fmt::format(
          "the ranks called different operations: {}: {}; {}: {}. All ranks must make the same calls in "
          "the same order",
          who(around_.rank), mine, who(peer), theirs));
}

void Monitor::enforce(nanoseconds waited, nanoseconds limit, const char* setting,
                      const std::function<std::string()>& culprit) {
  if (limit.count() != 0 && waited >= limit) {
    around_.fault.trip(ncclRemoteError, fmt::format("{}{} ({} = {:g} s)", culprit(), stoppedText(), setting,
                                                    inSeconds(limit)));
  } else if (waited >= next_warning_) {
    next_warning_ = waited * kWarningGrowth;
    around_.warn(culprit() + stoppedText());
  }
}

void CollectiveMonitor::inspect(int peer, nanoseconds waited) {
  lookFarther(waited);
  if (adoptFault() || findDeparted(waited) || findMismatch() || findSplit(waited)) return;
  if (hasVanished(peer, waited)) {
    around_.fault.trip(
        ncclRemoteError,
        fmt::format(
            "{} is gone: nothing listens at its address any more. It failed, left or died before {} was "
            "complete; look at its own output",
            who(peer), operationText()));
    return;
  }
  checkDeadlines(peer, waited);
}

/// What came tells of one operation of the peer, which may be a later one than where the ranks parted, or an
/// earlier one, that this rank has completed without the peer. The status lines know more.
void CollectiveMonitor::differs(int peer, const Descriptor& theirs) {
  const auto begin = std::chrono::steady_clock::now();
  while (!tryDiffers(peer, theirs, std::chrono::steady_clock::now() - begin)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

bool CollectiveMonitor::tryDiffers(int peer, const Descriptor& theirs, nanoseconds ago) {
  constexpr auto kAskFor = seconds(1);
  if (findMismatchWith(peer)) return true;
  if (!isLocal(peer) && ago < kAskFor) {
    around_.wiring.control->ask(around_.watcher);
    return adoptFault();
  }
  tripMismatch(operationText(), peer, describe(theirs));
  return true;
}

bool CollectiveMonitor::findDeparted(nanoseconds waited) {
  // Death is read before the status: what a dead rank wrote last is then all there.
  const std::vector<bool> dead = deadRanks(waited);
  for (const PeerInfo& peer : around_.wiring.peers) {
    const RankStatus& theirs = status(peer.rank);
    const auto state = theirs.state.load(std::memory_order_acquire);
    const bool is_gone = dead[static_cast<std::size_t>(peer.rank)] || state == RankStatus::State::left;
    const std::uint64_t completed = theirs.completed.load(std::memory_order_acquire);
    // Who completed this operation owes nothing to it: its slots and credits lie in memory that outlives it.
    if (!is_gone || completed >= operation_) continue;
    if (state == RankStatus::State::failed) return adoptFault();
    if (state == RankStatus::State::left && hasLeftSplit(peer.rank)) {
      tripMismatch(operationText(), peer.rank, endedSplitOf(theirs));
    } else if (state == RankStatus::State::left) {
      around_.fault.trip(
          ncclRemoteError,
          fmt::format(
              "{} destroyed its communicator after operation #{} (or exited), but other ranks are in {}. All "
              "ranks must make the same calls",
              describe(peer), completed, operationText()));
    } else {
      around_.fault.trip(
          ncclRemoteError,
          fmt::format("{} {} before it completed {}. Look at its own output, or for the kernel's "
                      "out-of-memory killer",
                      describe(peer), endText(peer.rank), operationText()));
    }
    return true;
  }
  return false;
}

bool CollectiveMonitor::findMismatch() {
  return std::ranges::any_of(around_.wiring.peers,
                             [this](const PeerInfo& peer) { return findMismatchWith(peer.rank); });
}

/// Names the first of the operations that are remembered in which the peer differs.
bool CollectiveMonitor::findMismatchWith(int peer) {
  for (std::uint64_t number = std::max(operation_, RankStatus::kKept) - RankStatus::kKept + 1;
       number <= operation_; ++number) {
    Descriptor mine;
    Descriptor theirs;
    if (!status(around_.rank).readDescriptor(number, mine) || !status(peer).readDescriptor(number, theirs) ||
        mine == theirs) {
      continue;
    }
    tripMismatch(describe(mine, number), peer, describe(theirs, number));
    return true;
  }
  return false;
}

bool CollectiveMonitor::findSplit(nanoseconds waited) {
  for (const PeerInfo& peer : around_.wiring.peers) {
    // A copy may be as old as the last split of both.
    if (!isLocal(peer.rank) && waited < kFreshCopies) continue;
    if (!isStuckInSplit(peer.rank)) continue;
    const RankStatus& theirs = status(peer.rank);
    const std::uint64_t entered = theirs.entered.load(std::memory_order_acquire);
    if (entered >= operation_) continue;
    tripMismatch(operationText(), peer.rank, lastCallOf(theirs));
    return true;
  }
  return false;
}

/// Ranks that have not entered the operation, as far as is known.
std::vector<int> CollectiveMonitor::absentRanks() const {
  std::vector<int> absent;
  for (const PeerInfo& peer : around_.wiring.peers) {
    if (status(peer.rank).entered.load(std::memory_order_acquire) < operation_) absent.push_back(peer.rank);
  }
  return absent;
}

std::string CollectiveMonitor::list(const std::vector<int>& ranks) const {
  std::string result;
  for (const int rank : ranks) {
    result += result.empty() ? "" : ", ";
    result += isKnown(rank) ? fmt::format("{} {}", who(rank), lastCallOf(status(rank)))
                            : fmt::format("{}, of which nothing is heard any more", who(rank));
  }
  return result;
}

bool Monitor::isKnown(int rank) const {
  const ControlPlane* control = around_.wiring.control.get();
  return control == nullptr || isLocal(rank) || control->isKnown(rank);
}

bool Monitor::isLocal(int rank) const { return std::ranges::binary_search(around_.wiring.locals, rank); }

bool Monitor::isStuckInSplit(int rank) const {
  if (caller_ != Caller::waits || rank == around_.rank) return false;
  const Attendance theirs = status(rank).readAttendance();
  return theirs.call == Attendance::Call::split && theirs.phase == Attendance::Phase::idle &&
         theirs.splits > status(around_.rank).readAttendance().splits;
}

bool Monitor::hasLeftSplit(int rank) const {
  const Attendance theirs = status(rank).readAttendance();
  return theirs.call == Attendance::Call::split &&
         theirs.splits > status(around_.rank).readAttendance().splits;
}

std::optional<bool> Vanishing::hasVanished(const NetAddress& listener, nanoseconds waited) {
  constexpr auto kPause = std::chrono::milliseconds(500);
  constexpr int kEnough = 2;  // what it sent last has arrived by then
  if (!probe_ && waited >= next_probe_) {
    probe_.emplace(listener);
    next_probe_ = waited + kPause;
  }
  if (!probe_) return std::nullopt;
  const Probe::Answer answer = probe_->answer();
  if (answer == Probe::Answer::pending) return std::nullopt;
  refusals_ = answer == Probe::Answer::refused ? refusals_ + 1 : 0;
  probe_.reset();
  if (refusals_ == 0) return false;
  return refusals_ >= kEnough ? std::optional(true) : std::nullopt;
}

bool Monitor::hasVanished(int peer, nanoseconds waited) {
  const ControlPlane* control = around_.wiring.control.get();
  if (control == nullptr || !control->hasGaps() || isLocal(peer)) return false;
  const NetAddress& listener = around_.wiring.peers[static_cast<std::size_t>(peer)].listener;
  return vanishing_.hasVanished(listener, waited).value_or(false);
}

std::string CollectiveMonitor::operationText() const { return describe(descriptor_, operation_); }

void CollectiveMonitor::checkDeadlines(int peer, nanoseconds waited) {
  // A process that computes answers when it is asked what it is doing; one that does not is stopped or cut
  // off.
  const int silent = silentRank(around_.wiring);
  const std::vector<int> absent = absentRanks();
  // A rank may be very late, and then all is well: only since it is here does nothing move.
  const nanoseconds stalled = stall_.lasted(waited, silent < 0 && !absent.empty());
  if (silent >= 0) {
    return enforce(stalled, around_.stall_timeout, "TUTTI_STALL_TIMEOUT", [&] {
      return fmt::format(
          "{} does not answer, and {} has lasted {:.1f} s. Is that process stopped, or its host "
          "unreachable?",
          who(silent), operationText(), inSeconds(waited));
    });
  }
  if (!absent.empty()) {
    return enforce(waited, around_.timeout, "TUTTI_TIMEOUT", [&] {
      return fmt::format("not all ranks have entered {} within {:.1f} s: {}", operationText(),
                         inSeconds(waited), list(absent));
    });
  }
  enforce(stalled, around_.stall_timeout, "TUTTI_STALL_TIMEOUT", [&] {
    return fmt::format(
        "every rank has entered {}, but {} sent nothing for {:.1f} s. Is it stopped, its core taken, or the "
        "way from it to {} blocked?",
        operationText(), who(peer), inSeconds(stalled), who(around_.rank));
  });
}

}  // namespace tutti
