// The monitor of transfers: what two ranks can know of each other.
#include <fmt/format.h>

#include <utility>

#include "runtime/monitor.h"
#include "runtime/status_words.h"

namespace tutti {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

double inSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

std::string TransferMonitor::pendingText(int peer) const {
  if (is_send_) {
    return fmt::format("{} has not received {} bytes that {} sends to it", who(peer), descriptor_.count,
                       who(around_.rank));
  }
  return fmt::format("{} has not sent {} bytes that {} waits to receive", who(peer), descriptor_.count,
                     who(around_.rank));
}

void TransferMonitor::inspect(int peer, nanoseconds waited) {
  lookFarther(waited);
  if (adoptFault() || findDeparted(peer, waited) || findElsewhere(peer, waited)) return;
  if (hasVanished(peer, waited)) {
    around_.fault.trip(
        ncclRemoteError,
        fmt::format("{}, and is gone: nothing listens at its address any more. It failed, left or "
                    "died; look at its own output",
                    pendingText(peer)));
    return;
  }
  const bool is_silent = silentRank(around_.wiring) == peer;
  const nanoseconds stalled = stall_.lasted(waited, !is_silent);
  if (is_silent) {
    return enforce(stalled, around_.stall_timeout, "TUTTI_STALL_TIMEOUT", [&] {
      return fmt::format(
          "{} for {:.1f} s, and does not answer. Is that process stopped, or its host unreachable?",
          pendingText(peer), inSeconds(waited));
    });
  }
  enforce(waited, around_.timeout, "TUTTI_TIMEOUT", [&] {
    return fmt::format(
        "{} for {:.1f} s. Has it posted the {} that belongs to it, and do both ranks post "
        "their transfers in one order? Those that need each other go into one group{}",
        pendingText(peer), inSeconds(waited), is_send_ ? "Recv" : "Send", silentText(around_.wiring));
  });
}

bool TransferMonitor::findDeparted(int peer, nanoseconds waited) {
  const bool is_dead = deadRanks(waited)[static_cast<std::size_t>(peer)];
  const auto state = status(peer).state.load(std::memory_order_acquire);
  if (!is_dead && state != RankStatus::State::left) return false;
  if (!std::exchange(seen_departed_, true)) return true;
  if (state == RankStatus::State::failed) return adoptFault();
  around_.fault.trip(ncclRemoteError,
                     state == RankStatus::State::left
                         ? fmt::format("{}, and destroyed its communicator, or exited", pendingText(peer))
                         : fmt::format("{}: it {}. Look at its own output, or for the kernel's out-of-memory "
                                       "killer",
                                       pendingText(peer), endText(peer)));
  return true;
}

bool TransferMonitor::findElsewhere(int peer, nanoseconds waited) {
  // What it sent before may have arrived: between threads of a host that is seen at the second look. A kernel
  // does not look when it is asked about.
  const bool is_seen_soon = isLocal(peer) && around_.wiring.gpu == nullptr;
  if (!is_seen_soon && waited < seconds(1)) return false;
  if (findSplit(peer)) return true;
  const RankStatus& theirs = status(peer);
  const std::uint64_t entered = theirs.entered.load(std::memory_order_acquire);
  const bool is_elsewhere = theirs.completed.load(std::memory_order_acquire) < entered &&
                            status(around_.rank).entered.load(std::memory_order_relaxed) < entered;
  if (!is_elsewhere || std::exchange(seen_elsewhere_, entered) != entered) return false;
  Descriptor collective;
  if (!theirs.readDescriptor(entered, collective)) return false;
  around_.fault.trip(
      ncclInvalidUsage,
      fmt::format("{}: it is inside {}, which {} has not entered. Both ranks must post their collectives and "
                  "transfers in the same order",
                  pendingText(peer), describe(collective, entered), who(around_.rank)));
  return true;
}

bool TransferMonitor::findSplit(int peer) {
  const bool is_in_split = isStuckInSplit(peer);
  if (!std::exchange(seen_in_split_, is_in_split) || !is_in_split) return false;
  around_.fault.trip(
      ncclInvalidUsage,
      fmt::format("{}: it {}, and {} has not called that. All ranks must make the same calls in the "
                  "same order",
                  pendingText(peer), lastCallOf(status(peer)), who(around_.rank)));
  return true;
}

}  // namespace tutti
