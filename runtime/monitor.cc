#include "runtime/monitor.h"

#include <fmt/format.h>

#include <utility>

namespace tutti {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kFirstWarning = seconds(10);
constexpr int kWarningGrowth = 6;  ///< 10 s, 1 min, 6 min, ...

double inSeconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Monitor::Monitor(const Wiring& wiring, int rank, const Settings& settings, FaultCell& fault,
                 std::function<void(const std::string&)> warn)
    : wiring_(wiring),
      rank_(rank),
      timeout_(settings.timeout),
      stall_timeout_(settings.stall_timeout),
      fault_(fault),
      warn_(std::move(warn)) {}

void Monitor::begin(std::uint64_t operation, const Descriptor& descriptor) {
  operation_ = operation;
  descriptor_ = descriptor;
  next_warning_ = kFirstWarning;
}

void Monitor::inspect(int peer, nanoseconds waited) {
  if (adoptFault() || findDeparted() || findMismatch()) return;
  checkDeadlines(peer, waited);
}

bool Monitor::adoptFault() {
  for (const PeerInfo& peer : wiring_.peers) {
    const RankStatus& status = wiring_.board[peer.rank];
    if (peer.rank == rank_ || status.state.load(std::memory_order_acquire) != RankStatus::State::failed)
      continue;
    fault_.trip(static_cast<ncclResult_t>(status.code), status.text.data());
    return true;
  }
  return false;
}

bool Monitor::findDeparted() {
  // Death is read before the status: what a dead rank wrote last is then all there.
  const std::vector<bool> dead = wiring_.watch->dead();
  for (const PeerInfo& peer : wiring_.peers) {
    const RankStatus& status = wiring_.board[peer.rank];
    const auto state = status.state.load(std::memory_order_acquire);
    const bool is_gone = dead[static_cast<std::size_t>(peer.rank)] || state == RankStatus::State::left;
    const std::uint64_t completed = status.completed.load(std::memory_order_acquire);
    // Who completed this operation owes nothing to it: its slots and credits lie in memory that outlives it.
    if (!is_gone || completed >= operation_) continue;
    if (state == RankStatus::State::failed) return adoptFault();
    if (state == RankStatus::State::left) {
      fault_.trip(ncclRemoteError,
                  fmt::format("{} destroyed its communicator after operation {}, but other ranks are "
                              "in operation {}, {}. All ranks must make the same calls",
                              describe(peer), completed, operation_, describe(descriptor_)));
    } else {
      fault_.trip(ncclRemoteError,
                  fmt::format("{} died (its process has ended) before it completed operation {}, {}. "
                              "Look at its own output, or for the kernel's out-of-memory killer",
                              describe(peer), operation_, describe(descriptor_)));
    }
    return true;
  }
  return false;
}

bool Monitor::findMismatch() {
  for (const PeerInfo& peer : wiring_.peers) {
    Descriptor theirs;
    if (!wiring_.board[peer.rank].readDescriptor(operation_, theirs) || theirs == descriptor_) continue;
    differs(peer.rank, theirs);
    return true;
  }
  return false;
}

void Monitor::differs(int peer, const Descriptor& theirs) {
  const auto who = [this](int rank) { return describe(wiring_.peers[static_cast<std::size_t>(rank)]); };
  fault_.trip(ncclInvalidUsage,
              fmt::format("the ranks called different operations: {} {}, {} {} (operation {}). All "
                          "ranks must make the same calls in the same order",
                          who(rank_), describe(descriptor_), who(peer), describe(theirs), operation_));
}

std::vector<int> Monitor::absentRanks() const {
  std::vector<int> absent;
  for (const PeerInfo& peer : wiring_.peers) {
    if (wiring_.board[peer.rank].entered.load(std::memory_order_acquire) < operation_)
      absent.push_back(peer.rank);
  }
  return absent;
}

std::string Monitor::list(const std::vector<int>& ranks) const {
  std::string result;
  for (const int rank : ranks) {
    const auto entered = wiring_.board[rank].entered.load(std::memory_order_acquire);
    result += fmt::format("{}{} last entered operation {}", result.empty() ? "" : ", ",
                          describe(wiring_.peers[static_cast<std::size_t>(rank)]), entered);
  }
  return result;
}

std::string Monitor::operationText() const {
  return fmt::format("operation {}, {}", operation_, describe(descriptor_));
}

void Monitor::checkDeadlines(int peer, nanoseconds waited) {
  const std::vector<int> absent = absentRanks();
  const nanoseconds limit = absent.empty() ? stall_timeout_ : timeout_;
  const std::string culprit =
      absent.empty()
          ? fmt::format(
                "every rank has entered {}, but {} sent nothing for {:.1f} s. Is it stopped, or its core "
                "taken?",
                operationText(), describe(wiring_.peers[static_cast<std::size_t>(peer)]), inSeconds(waited))
          : fmt::format("not all ranks have entered {} within {:.1f} s: {}", operationText(),
                        inSeconds(waited), list(absent));
  if (limit.count() != 0 && waited >= limit) {
    fault_.trip(ncclRemoteError,
                fmt::format("{} ({} = {:g} s)", culprit,
                            absent.empty() ? "TUTTI_STALL_TIMEOUT" : "TUTTI_TIMEOUT", inSeconds(limit)));
  } else if (waited >= next_warning_) {
    next_warning_ = waited * kWarningGrowth;
    warn_(culprit);
  }
}

}  // namespace tutti
