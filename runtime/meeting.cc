#include "runtime/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/bootstrap/control_tree.h"
#include "runtime/bootstrap/rendezvous.h"
#include "runtime/status_words.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using IdWords = decltype(RankStatus::Meeting::id);

constexpr auto kLongWait = std::chrono::milliseconds(200);  ///< then ranks on other hosts are asked
constexpr auto kFreshCopies =
    std::chrono::milliseconds(500);  ///< they have been asked, and answered, by then
/// Of the rendezvous, behind the ranks' own, which know more.
constexpr auto kLater = std::chrono::seconds(2);

/// Equal for equal calls and ranks: FNV-1a.
std::uint64_t keyOf(Attendance::Call call, const std::vector<int>& ranks) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  add(static_cast<std::uint64_t>(call));
  for (const int rank : ranks) add(static_cast<std::uint64_t>(rank) + 256);
  return hash;
}

const char* whoMustCall(Attendance::Call call) {
  return call == Attendance::Call::shrink ? "All ranks that stay call it, with the same excludeRanksList"
                                          : "All ranks of the communicator call it, in one order with its "
                                            "operations; one that is to be in "
                                            "none gives NCCL_SPLIT_NOCOLOR";
}

}  // namespace

void Meetings::begin(Attendance::Call call, const std::vector<int>& ranks) {
  const bool is_refused = shown_.phase == Attendance::Phase::refused;
  if (shown_.call == Attendance::Call::shrink && !is_refused) shrunk_.insert(excluded_);
  ranks_ = ranks;
  begun_ = Clock::now();
  gone_before_ = gone();
  for (const int rank : ranks) {
    if (wiring_.board[rank].state.load(std::memory_order_acquire) == RankStatus::State::left) {
      gone_before_[static_cast<std::size_t>(rank)] = true;
    }
  }
  shown_.call = call;
  shown_.phase = Attendance::Phase::waiting;
  shown_before_.clear();
  excluded_ = {};
  for (const PeerInfo& peer : wiring_.peers) {
    shown_before_.push_back(wiring_.board[peer.rank].readAttendance());
    if (!std::ranges::binary_search(ranks, peer.rank)) excluded_.add(peer.rank);
  }
  shown_.list = excluded_.hash();
  if (call == Attendance::Call::split) shown_.splits = agreed_splits_ + 1;
  if (call == Attendance::Call::shrink) wiring_.board[rank_].exclude(excluded_);
  wiring_.board[rank_].attend(shown_);
}

void Meetings::agree(std::uint32_t number) {
  agreed_splits_ = shown_.splits = number;
  end();
}

void Meetings::end() noexcept {
  if (shown_.phase == Attendance::Phase::refused) {  // for the others to see
    if (ranks_.front() == rank_) withdraw();
    return;
  }
  shown_.phase = Attendance::Phase::over;
  wiring_.board[rank_].attend(shown_);
}

ncclUniqueId Meetings::open(const std::vector<int>& ranks, const std::string& missing_words) const {
  NetAddress address = wiring_.peers[static_cast<std::size_t>(rank_)].listener;
  address.port = 0;
  std::vector<std::string> names;
  names.reserve(ranks.size());
  for (const int rank : ranks) names.push_back(describe(wiring_.peers[static_cast<std::size_t>(rank)]));
  const auto missingText = [names, missing_words](const std::vector<int>& missing) {
    std::vector<std::string> who;
    who.reserve(missing.size());
    for (const int rank : missing) who.push_back(names[static_cast<std::size_t>(rank)]);
    return fmt::format("{} {}", fmt::join(who, ", "), missing_words);
  };
  return openRendezvous({.init_timeout = settings_.init_timeout + kLater,
                         .network = settings_.network,
                         .address = address,
                         .missing_text = missingText});
}

ncclUniqueId Meetings::call(const std::function<void()>& check) {
  const std::uint64_t key = keyOf(shown_.call, ranks_);
  if (ranks_.front() != rank_) return await(ranks_.front(), key, check);
  const ncclUniqueId id =
      open(ranks_, fmt::format("did not call {} within {} s (TUTTI_INIT_TIMEOUT). {}", nameOf(shown_.call),
                               std::chrono::duration<double>(settings_.init_timeout).count(),
                               whoMustCall(shown_.call)));
  wiring_.board[rank_].call({.number = ++called_, .key = key, .id = std::bit_cast<IdWords>(id)});
  if (wiring_.control != nullptr) wiring_.control->call(process_.watcher());
  return id;
}

/// Who makes the same call again, and means to meet anew, is not to come to the old place.
void Meetings::withdraw() noexcept {
  wiring_.board[rank_].call({});
  if (wiring_.control != nullptr) wiring_.control->call(process_.watcher());
}

ncclUniqueId Meetings::await(int caller, std::uint64_t key, const std::function<void()>& check) {
  const auto end = begun_ + settings_.init_timeout + kLater;
  auto nap = std::chrono::microseconds(50);
  std::uint64_t& attended = attended_[caller];
  for (;;) {
    const RankStatus::Meeting called = wiring_.board[caller].readMeeting();
    if (called.number > attended && called.key == key) {
      attended = called.number;
      return std::bit_cast<ncclUniqueId>(called.id);
    }
    check();
    if (Clock::now() >= end) {
      throw Error(
          ncclSystemError,
          fmt::format("{}: rank {} heard nothing of where to meet from {}, which called it, too, within {} s "
                      "(TUTTI_INIT_TIMEOUT)",
                      nameOf(shown_.call), rank_, describe(wiring_.peers[static_cast<std::size_t>(caller)]),
                      std::chrono::duration<double>(settings_.init_timeout).count()));
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, std::chrono::microseconds(5000));
  }
}

std::vector<bool> Meetings::gone() const {
  std::vector<bool> gone = wiring_.watch->dead();
  for (std::size_t rank = 0; wiring_.control != nullptr && rank < gone.size(); ++rank) {
    gone[rank] = gone[rank] || wiring_.control->isLost(static_cast<int>(rank));
  }
  return gone;
}

bool Meetings::hasCalled(int rank) const { return wiring_.board[rank].readAttendance().hasCalled(shown_); }

/// Called what this rank is in, and waits no more though not all came.
bool Meetings::hasGivenUp(int rank) const {
  return shown_.isUnderWay() && !gone_before_[static_cast<std::size_t>(rank)] && hasCalled(rank) &&
         !wiring_.board[rank].readAttendance().isUnderWay();
}

void Meetings::requireComing() {
  if (!shown_.isUnderWay()) return;
  if (shown_.phase == Attendance::Phase::waiting && is_idle_()) {
    shown_.phase = Attendance::Phase::idle;
    wiring_.board[rank_].attend(shown_);
  }
  const auto waited = Clock::now() - begun_;
  if (wiring_.control != nullptr && waited >= kLongWait) wiring_.control->ask(process_.watcher());
  requireSame(waited);
  const std::vector<bool> gone = this->gone();
  const auto isOut = [&](int rank) {
    const auto state = wiring_.board[rank].state.load(std::memory_order_acquire);
    return (state == RankStatus::State::left || gone[static_cast<std::size_t>(rank)]) && hasGivenUp(rank);
  };
  if (waited < settings_.init_timeout && std::ranges::none_of(ranks_, isOut)) return;
  std::vector<std::string> missing;
  for (const int rank : ranks_) {
    if (!hasCalled(rank)) missing.push_back(absence(rank));
  }
  if (missing.empty()) return;
  const bool is_early = waited < settings_.init_timeout;
  const std::chrono::duration<double> time = is_early ? waited : Clock::duration(settings_.init_timeout);
  throw Error(
      ncclSystemError,
      fmt::format("{}: not all ranks called it within {:.4g} s{} (TUTTI_INIT_TIMEOUT), as rank {} did: "
                  "{}. {}{}",
                  nameOf(shown_.call), time.count(), is_early ? ", when another rank gave up" : "", rank_,
                  fmt::join(missing, ", "), whoMustCall(shown_.call), brokenTree(gone)));
}

/// Names a rank that is gone or has left, over which others hear of this one: what is known of them may be
/// old.
std::string Meetings::brokenTree(const std::vector<bool>& gone) const {
  if (wiring_.control == nullptr) return "";
  const auto nranks = static_cast<int>(wiring_.peers.size());
  for (const PeerInfo& peer : wiring_.peers) {
    const auto state = wiring_.board[peer.rank].state.load(std::memory_order_acquire);
    const bool is_out = state == RankStatus::State::left || gone[static_cast<std::size_t>(peer.rank)];
    if (!is_out || treeChildren(peer.rank, nranks).empty()) continue;
    return fmt::format(
        ". {} has ended, over which ranks of other hosts hear of each other: so they may have called it. "
        "Make a new "
        "communicator by ncclCommInitRank",
        describe(peer));
  }
  return "";
}

/// Called what this rank is in, and gave up since begin() because another one did not.
bool Meetings::hasRefused(int rank) const {
  const Attendance theirs = wiring_.board[rank].readAttendance();
  return theirs.phase == Attendance::Phase::refused &&
         theirs != shown_before_[static_cast<std::size_t>(rank)] && theirs.hasCalled(shown_);
}

/// Whether `rank` waits, or gave up waiting since begin(), for `other`, which called what this rank is in, in
/// a call that this rank has not made.
bool Meetings::waitsElsewhere(int rank, int other) const {
  const RankStatus& line = wiring_.board[rank];
  const Attendance theirs = line.readAttendance();
  const bool is_refused =
      theirs.phase == Attendance::Phase::refused && theirs != shown_before_[static_cast<std::size_t>(rank)];
  if (rank == rank_ || rank == other || (!theirs.isUnderWay() && !is_refused)) return false;
  if (theirs.call == Attendance::Call::split) {
    return shown_.call != Attendance::Call::split && theirs.splits > shown_.splits;
  }
  const RankSet excluded = line.readExcluded();
  if (excluded.hash() != theirs.list || excluded.contains(other))
    return false;  // being written, or without it
  const bool is_same = shown_.call == Attendance::Call::shrink && excluded == excluded_;
  return !is_same && !shrunk_.contains(excluded);
}

/// Two ranks that wait for each other in different calls, of which the first is in this rank's.
std::optional<std::pair<int, int>> Meetings::findDifference(std::chrono::nanoseconds waited) const {
  // A copy may be as old as the last call of both.
  const auto isFresh = [&](int rank) {
    return waited >= kFreshCopies || std::ranges::binary_search(wiring_.locals, rank);
  };
  for (const int one : ranks_) {
    if (one != rank_ && !(isFresh(one) && hasRefused(one))) continue;
    for (const int other : ranks_) {
      if (isFresh(other) && waitsElsewhere(other, one)) return std::pair(one, other);
    }
  }
  return std::nullopt;
}

void Meetings::requireSame(std::chrono::nanoseconds waited) {
  const auto found = findDifference(waited);
  if (!found) return;
  const auto who = [this](int rank) { return describe(wiring_.peers[static_cast<std::size_t>(rank)]); };
  const RankStatus& other = wiring_.board[found->second];
  const std::string text = fmt::format(
      "the ranks called different operations: {}: {}; {}: {}. All ranks must make the same calls in the same "
      "order, with the same excludeRanksList",
      who(found->first), meetingText(shown_, excluded_), who(found->second),
      meetingText(other.readAttendance(), other.readExcluded()));
  shown_.phase = Attendance::Phase::refused;
  wiring_.board[rank_].attend(shown_);
  fail_(ncclInvalidUsage, text);
  throw Error(ncclInvalidUsage, text);
}

/// "rank 2 (pid 4711 on node7) is inside AllReduce #6 ...".
std::string Meetings::absence(int rank) const {
  const std::string who = describe(wiring_.peers[static_cast<std::size_t>(rank)]);
  const std::vector<int> stopped = wiring_.watch->stopped();
  if (std::ranges::find(stopped, rank) != stopped.end()) return who + " is stopped";
  if (wiring_.control != nullptr && wiring_.control->isSilent(rank)) return who + " does not answer";
  return fmt::format("{} {}", who, lastCallOf(wiring_.board[rank]));
}

void Meetings::requireAlive(const std::vector<int>& ranks, Faults faults) const {
  // Read before the status: what a dead rank wrote last is then all there.
  const std::vector<bool> gone = this->gone();
  std::vector<std::string> left;
  for (const int rank : ranks) {
    if (rank == rank_) continue;
    const PeerInfo& peer = wiring_.peers[static_cast<std::size_t>(rank)];
    const RankStatus& theirs = wiring_.board[rank];
    const auto state = theirs.state.load(std::memory_order_acquire);
    if (state == RankStatus::State::failed && faults == Faults::refused) {
      const auto code = static_cast<ncclResult_t>(theirs.code);
      fail_(code, theirs.text.data());
      throw Error(code, theirs.text.data());
    }
    if (hasGivenUp(rank)) continue;
    if (state == RankStatus::State::left) {
      left.push_back(describe(peer));
    } else if (gone[static_cast<std::size_t>(rank)]) {
      throw Error(ncclRemoteError,
                  fmt::format("{} is gone: its process has ended, or its host cannot be reached any more",
                              describe(peer)));
    }
  }
  // Last: a rank may have left because of another one that is gone.
  if (!left.empty()) {
    throw Error(ncclRemoteError, fmt::format("{} destroyed the communicator", fmt::join(left, " and ")));
  }
}

}  // namespace tutti
