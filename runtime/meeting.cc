#include "runtime/meeting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "runtime/bootstrap/rendezvous.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;
using IdWords = decltype(RankStatus::Meeting::id);

/// Equal for equal purposes and ranks: FNV-1a.
std::uint64_t keyOf(const std::vector<int>& ranks, std::string_view purpose) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const char letter : purpose) add(static_cast<unsigned char>(letter));
  for (const int rank : ranks) add(static_cast<std::uint64_t>(rank) + 256);
  return hash;
}

}  // namespace

ncclUniqueId Meetings::open() const {
  NetAddress address = wiring_.peers[static_cast<std::size_t>(rank_)].listener;
  address.port = 0;
  return openRendezvous(
      {.init_timeout = settings_.init_timeout, .network = settings_.network, .address = address});
}

ncclUniqueId Meetings::call(const std::vector<int>& ranks, const char* purpose,
                            const std::function<void()>& check) {
  const std::uint64_t key = keyOf(ranks, purpose);
  if (ranks.front() != rank_) return await(ranks.front(), key, purpose, check);
  const ncclUniqueId id = open();
  wiring_.board[rank_].call({.number = ++called_, .key = key, .id = std::bit_cast<IdWords>(id)});
  if (wiring_.control != nullptr) wiring_.control->call(process_.watcher());
  return id;
}

ncclUniqueId Meetings::await(int caller, std::uint64_t key, const char* purpose,
                             const std::function<void()>& check) {
  const auto end = Clock::now() + settings_.init_timeout;
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
      const bool calls_others = called.number > attended;
      throw Error(
          ncclSystemError,
          fmt::format(
              "{}: rank {} waited {} s (TUTTI_INIT_TIMEOUT), but {} {}. All ranks of the communicator "
              "call it, or all but those that ncclCommShrink leaves out, in the same order",
              purpose, rank_, std::chrono::duration<double>(settings_.init_timeout).count(),
              describe(wiring_.peers[static_cast<std::size_t>(caller)]),
              calls_others ? "called another function, or ncclCommShrink with another list"
                           : "did not call it"));
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(nap * 2, std::chrono::microseconds(5000));
  }
}

void Meetings::requireAlive(const std::vector<int>& ranks, Faults faults) const {
  const std::vector<bool> dead = wiring_.watch->dead();
  std::vector<std::string> left;
  for (const int rank : ranks) {
    if (rank == rank_) continue;
    const PeerInfo& peer = wiring_.peers[static_cast<std::size_t>(rank)];
    // Death is read before the status: what a dead rank wrote last is then all there.
    const bool is_gone =
        dead[static_cast<std::size_t>(rank)] || (wiring_.control != nullptr && wiring_.control->isLost(rank));
    const RankStatus& theirs = wiring_.board[rank];
    const auto state = theirs.state.load(std::memory_order_acquire);
    if (state == RankStatus::State::failed && faults == Faults::refused) {
      throw Error(static_cast<ncclResult_t>(theirs.code), theirs.text.data());
    }
    if (state == RankStatus::State::left) {
      left.push_back(describe(peer));
    } else if (is_gone) {
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
