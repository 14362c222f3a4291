#include "runtime/subgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/communicator.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr const char* kSplit = nameOf(Attendance::Call::split);
constexpr const char* kShrink = nameOf(Attendance::Call::shrink);

/// What every rank says for a split.
struct Vote {
  std::int32_t color;
  std::int32_t key;
  std::uint32_t number;  ///< of the split, as the rank counts
};

/// The ranks of one colour in their new order.
std::vector<int> groupOf(const std::vector<Vote>& votes, std::int32_t color) {
  std::vector<int> group;
  for (int rank = 0; rank < static_cast<int>(votes.size()); ++rank) {
    if (votes[static_cast<std::size_t>(rank)].color == color) group.push_back(rank);
  }
  std::ranges::stable_sort(group, {},
                           [&votes](int rank) { return votes[static_cast<std::size_t>(rank)].key; });
  return group;
}

int placeIn(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

/// What is asked while `ranks` come together.
std::function<void()> checkOf(Communicator& parent, const char* function, std::vector<int> ranks) {
  return [&parent, function, ranks = std::move(ranks)] {
    parent.requireMeeting(function, ranks);
    parent.meetings().requireComing();
  };
}

/// All ranks say what they wish, and the first rank of each colour where its group meets.
std::optional<Membership> vote(Communicator& parent, const Vote& wish, const ncclUniqueId& meeting,
                               const std::function<void()>& check) {
  const int rank = parent.rank();
  const Settings& settings = parent.settings();
  Bootstrap bootstrap(decode(meeting), parent.nranks(), rank, settings.network,
                      std::chrono::steady_clock::now() + settings.init_timeout + std::chrono::seconds(5),
                      check);
  const std::vector<Vote> votes = bootstrap.allGather(wish);
  // Before anybody can be done: who is shows no split that another could wait for.
  parent.meetings().agree(std::ranges::max(votes, {}, &Vote::number).number);
  const std::vector<int> group = groupOf(votes, wish.color);
  const bool has_color = wish.color != NCCL_SPLIT_NOCOLOR;
  ncclUniqueId mine{};
  try {
    if (has_color && group.front() == rank)
      mine = parent.meetings().open(
          group, "called ncclCommSplit, but did not join the new communicator in time (TUTTI_INIT_TIMEOUT)");
  } catch (const Error& error) {
    bootstrap.fail(fmt::format("rank {}: {}: {}", rank, kSplit, error.what()));
    throw;
  }
  const std::vector<ncclUniqueId> ids = bootstrap.allGather(mine);
  bootstrap.leave();
  if (!has_color) return std::nullopt;
  return Membership{.nranks = static_cast<int>(group.size()),
                    .rank = placeIn(group, rank),
                    .id = decode(ids[static_cast<std::size_t>(group.front())]),
                    .check = checkOf(parent, kSplit, group)};
}

}  // namespace

void requireCause(const Error& error, const std::function<void()>& check) {
  constexpr auto kKnownWithin = std::chrono::seconds(2);
  constexpr auto kPause = std::chrono::milliseconds(5);
  const auto* const failure = dynamic_cast<const BootstrapError*>(&error);
  if (failure == nullptr || !failure->lacksCause() || !check) return;
  const auto end = std::chrono::steady_clock::now() + kKnownWithin;
  do {
    check();
    std::this_thread::sleep_for(kPause);
  } while (std::chrono::steady_clock::now() < end);
}

std::optional<Membership> splitMembership(Communicator& parent, int color, int key) {
  const Occupancy occupancy = parent.occupy();
  std::vector<int> all(static_cast<std::size_t>(parent.nranks()));
  std::iota(all.begin(), all.end(), 0);
  const auto check = checkOf(parent, kSplit, all);
  Meetings& meetings = parent.meetings();
  meetings.begin(Attendance::Call::split, all);
  const MeetingEnd end(meetings);
  try {
    return vote(parent, {color, key, meetings.splitNumber()}, meetings.call(check), check);
  } catch (const Error& error) {
    requireCause(error, check);
    // Of ranks that called something else, as one said that met this one: who did may see this rank end
    // first.
    if (error.code() == ncclInvalidUsage) parent.fail(error.code(), error.what());
    throw;
  }
}

std::vector<int> survivorsOf(const Communicator& parent, const int* excluded, int count) {
  const auto refuse = [](const std::string& why) {
    throw Error(ncclInvalidArgument, fmt::format("{}: {}", kShrink, why));
  };
  if (count < 1 || count >= parent.nranks()) {
    refuse(fmt::format("excludeRanksCount {} is not from 1 to {}", count, parent.nranks() - 1));
  }
  std::vector<bool> is_excluded(static_cast<std::size_t>(parent.nranks()));
  for (int i = 0; i < count; ++i) {
    const int rank = excluded[i];
    if (rank < 0 || rank >= parent.nranks()) {
      refuse(
          fmt::format("rank {} of excludeRanksList is not one of ranks 0 to {}", rank, parent.nranks() - 1));
    }
    if (is_excluded[static_cast<std::size_t>(rank)]) {
      refuse(fmt::format("rank {} is twice in excludeRanksList", rank));
    }
    is_excluded[static_cast<std::size_t>(rank)] = true;
  }
  if (is_excluded[static_cast<std::size_t>(parent.rank())]) {
    refuse(
        fmt::format("rank {} excludes itself. The ranks that stay call it, and nobody else", parent.rank()));
  }
  std::vector<int> survivors;
  for (int rank = 0; rank < parent.nranks(); ++rank) {
    if (!is_excluded[static_cast<std::size_t>(rank)]) survivors.push_back(rank);
  }
  return survivors;
}

Membership shrinkMembership(Communicator& parent, const std::vector<int>& survivors) {
  // An operation that another thread issues while NCCL_SHRINK_ABORT ends all fails at once, but has it until
  // then.
  const Occupancy occupancy = parent.occupy(std::chrono::seconds(10));
  Meetings& meetings = parent.meetings();
  meetings.begin(Attendance::Call::shrink, survivors);
  // Until all have joined: they meet only there.
  const auto end = std::make_shared<MeetingEnd>(meetings);
  const auto check = [end, ask = checkOf(parent, kShrink, survivors)] { ask(); };
  const ncclUniqueId id = meetings.call(check);
  return {.nranks = static_cast<int>(survivors.size()),
          .rank = placeIn(survivors, parent.rank()),
          .id = decode(id),
          .check = check};
}

}  // namespace tutti
