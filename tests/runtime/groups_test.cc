// Groups: calls that are launched together, by one thread for one rank or for several.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"

namespace tutti {
namespace {

using test::lastError;

#define EXPECT_SAYS(words) EXPECT_NE(lastError().find(words), std::string::npos) << lastError()

/// All ranks of a communicator in this thread.
std::vector<Comm> initAll(int nranks) {
  std::vector<ncclComm_t> handles(static_cast<std::size_t>(nranks));
  check(ncclCommInitAll(handles.data(), nranks, nullptr));
  std::vector<Comm> comms;
  comms.reserve(handles.size());
  for (const ncclComm_t handle : handles) comms.emplace_back(handle);
  return comms;
}

TEST(Groups, AnEndWithoutAStartIsRefused) {
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_SAYS("ncclGroupEnd without an ncclGroupStart");
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(Groups, NothingHappensBeforeTheOutermostEnd) {
  Comm comm(1, test::newId(), 0);
  float in = 3;
  float out = 0;
  check(ncclGroupStart());
  check(ncclGroupStart());
  comm.allReduce(&in, &out, 1, ncclSum);
  check(ncclGroupEnd());
  EXPECT_EQ(out, 0);
  check(ncclGroupEnd());
  EXPECT_EQ(out, 3);
}

TEST(Groups, ARefusedCallFailsTheGroupAndNothingIsLaunched) {
  Comm comm(1, test::newId(), 0);
  float in = 3;
  float out = 0;
  check(ncclGroupStart());
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm.handle(), nullptr), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(&in, &out, 1, ncclFloat, 5, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, nullptr, nullptr), ncclInvalidArgument);
  auto other = reinterpret_cast<ncclComm_t>(1);
  EXPECT_EQ(ncclCommInitRank(&other, 1, test::newId(), 0), ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_SAYS("root 5 is not");  // the first of the two
  EXPECT_EQ(out, 0);
  EXPECT_EQ(other, nullptr);
  comm.allReduce(&in, &out, 1, ncclSum);  // the communicator is whole, and the group forgotten
  EXPECT_EQ(out, 3);
}

TEST(Groups, AGroupThatAnExceptionLeavesIsNotLaunched) {
  Comm comm(1, test::newId(), 0);
  float in = 3;
  float out = 0;
  {
    const Group group;
    comm.allReduce(&in, &out, 1, ncclSum);
  }
  EXPECT_EQ(out, 0);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(Groups, CollectivesOfOneRankRunInTheirOrder) {
  EXPECT_EQ(test::runRanks(3,
                           [](Comm& comm) {
                             std::vector<std::int32_t> data(5000, 1);
                             Group group;
                             for (int i = 0; i < 5; ++i) {
                               comm.allReduce(data.data(), data.data(), data.size(), ncclSum);
                             }
                             group.end();
                             for (const auto value : data) {
                               if (value != 243) throw std::runtime_error("wrong sum");
                             }
                           }),
            test::noErrors(3));
}

TEST(Groups, OneThreadDrivesAllRanks) {
  for (const int nranks : {1, 2, 3, 7, 16}) {
    std::vector<Comm> comms = initAll(nranks);
    const auto n = static_cast<std::size_t>(nranks);
    constexpr std::size_t kCount = 100'003;
    std::vector<std::vector<std::int32_t>> data(n, std::vector<std::int32_t>(kCount));
    for (std::size_t r = 0; r < n; ++r) {
      EXPECT_EQ(comms[r].rank(), static_cast<int>(r));
      for (std::size_t i = 0; i < kCount; ++i) data[r][i] = static_cast<std::int32_t>(r * 1000 + i);
    }
    for (int round = 0; round < 2; ++round) {
      Group group;
      for (std::size_t r = 0; r < n; ++r) comms[r].allReduce(data[r].data(), data[r].data(), kCount, ncclMax);
      for (std::size_t r = n; r-- > 0;)
        comms[r].broadcast(data[r].data(), data[r].data(), 10, ncclInt32, nranks - 1);
      group.end();
    }
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(data[r][i], static_cast<std::int32_t>((n - 1) * 1000 + i))
            << nranks << " " << r << " " << i;
      }
    }
  }
}

TEST(Groups, SeveralCommunicatorsOfSeveralThreads) {
  // Each thread drives two ranks of one communicator and one rank of another.
  const ncclUniqueId first = test::newId();
  const ncclUniqueId second = test::newId();
  const auto body = [&](int thread) {
    ncclComm_t handles[3];
    check(ncclGroupStart());
    check(ncclCommInitRank(&handles[0], 6, first, thread));
    check(ncclCommInitRank(&handles[1], 6, first, thread + 3));
    check(ncclCommInitRank(&handles[2], 3, second, 2 - thread));
    check(ncclGroupEnd());
    Comm comms[] = {Comm(handles[0]), Comm(handles[1]), Comm(handles[2])};
    for (int round = 0; round < 20; ++round) {
      std::vector<std::int32_t> data[3];
      Group group;
      for (int c = 0; c < 3; ++c) {
        data[c].assign(1 + static_cast<std::size_t>(round) * 700, 1 + c);
        comms[c].allReduce(data[c].data(), data[c].data(), data[c].size(), ncclSum);
      }
      group.end();
      if (data[0].back() != 9 || data[1].back() != 9 || data[2].back() != 9) {
        throw std::runtime_error("wrong sum");
      }
    }
  };
  EXPECT_EQ(test::runThreads(3, body), test::noErrors(3));
}

/// What one rank posts: calls that keep their order, and lists of such calls that have none.
using Calls = std::vector<std::function<void()>>;

/// Posts the calls of all lists in an order drawn by the rank itself, each list's in its own order.
void postInAnyOrder(std::vector<Calls> lists, std::mt19937_64& random) {
  for (Calls& list : lists) std::ranges::reverse(list);
  while (!lists.empty()) {
    const std::size_t pick = random() % lists.size();
    lists[pick].back()();
    lists[pick].pop_back();
    if (lists[pick].empty()) lists.erase(lists.begin() + static_cast<std::ptrdiff_t>(pick));
  }
}

/// Element i of what `from` has for `to` in message `number`.
std::int32_t word(int from, int to, int number, std::size_t i) {
  return from * 1'000'000 + to * 10'000 + number * 1000 + static_cast<std::int32_t>(i % 1000);
}

/// One communicator's part of a group: two collectives, and two messages to and from each peer.
class Part {
 public:
  Part(Comm& comm, std::size_t count) : comm_(comm), count_(count), sum_(count, 1 + comm.rank()) {
    const int nranks = comm.size();
    blocks_.resize(count * static_cast<std::size_t>(nranks));
    gathered_ = blocks_;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i] = word(comm.rank(), static_cast<int>(i / count), 0, i % count);
    }
    for (int peer = 0; peer < nranks; ++peer) {
      for (int number = 1; number <= 2; ++number) {
        std::vector<std::int32_t> data(count * static_cast<std::size_t>(number));
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = word(comm.rank(), peer, number, i);
        received_.emplace_back(data.size());
        sent_.push_back(std::move(data));
      }
    }
  }

  void addTo(std::vector<Calls>& lists) {
    lists.push_back({[this] { comm_.allReduce(sum_.data(), sum_.data(), count_, ncclSum); },
                     [this] { comm_.allToAll(blocks_.data(), gathered_.data(), count_, ncclInt32); }});
    for (int peer = 0; peer < comm_.size(); ++peer) {
      Calls sends;
      Calls receives;
      for (std::size_t at = 2 * static_cast<std::size_t>(peer); at < 2 * static_cast<std::size_t>(peer) + 2;
           ++at) {
        sends.push_back([this, at, peer] { comm_.send(sent_[at].data(), sent_[at].size(), peer); });
        receives.push_back(
            [this, at, peer] { comm_.receive(received_[at].data(), received_[at].size(), peer); });
      }
      lists.push_back(std::move(sends));
      lists.push_back(std::move(receives));
    }
  }

  void requireRight() const {
    const int nranks = comm_.size();
    bool right = sum_.back() == nranks * (nranks + 1) / 2;
    for (std::size_t i = 0; i < gathered_.size(); ++i) {
      right = right && gathered_[i] == word(static_cast<int>(i / count_), comm_.rank(), 0, i % count_);
    }
    for (std::size_t at = 0; at < received_.size(); ++at) {
      for (std::size_t i = 0; i < received_[at].size(); ++i) {
        right = right && received_[at][i] ==
                             word(static_cast<int>(at / 2), comm_.rank(), static_cast<int>(at % 2) + 1, i);
      }
    }
    if (!right) throw std::runtime_error("wrong data");
  }

 private:
  Comm& comm_;
  std::size_t count_;
  std::vector<std::int32_t> sum_;
  std::vector<std::int32_t> blocks_;
  std::vector<std::int32_t> gathered_;
  std::vector<std::vector<std::int32_t>> sent_;  // two to each peer
  std::vector<std::vector<std::int32_t>> received_;
};

TEST(Groups, EveryRankPostsInAnOrderOfItsOwn) {
  constexpr int kRanks = 4;
  const ncclUniqueId first = test::newId();
  const ncclUniqueId second = test::newId();
  EXPECT_EQ(test::runThreads(kRanks,
                             [&](int rank) {
                               Comm a(kRanks, first, rank);
                               Comm b(kRanks, second, kRanks - 1 - rank);
                               std::mt19937_64 random(static_cast<std::uint64_t>(rank));
                               for (const std::size_t count : {1, 10, 1000, 50'000}) {
                                 for (int round = 0; round < 5; ++round) {
                                   Part parts[] = {Part(a, count), Part(b, count)};
                                   std::vector<Calls> lists;
                                   for (Part& part : parts) part.addTo(lists);
                                   Group group;
                                   postInAnyOrder(std::move(lists), random);
                                   group.end();
                                   for (const Part& part : parts) part.requireRight();
                                 }
                               }
                             }),
            test::noErrors(kRanks));
}

TEST(Groups, AFaultOfOneCommunicatorLeavesTheOtherAlone) {
  std::vector<Comm> broken = initAll(2);
  std::vector<Comm> whole = initAll(2);
  std::vector<float> data(100, 1);
  std::vector<std::int32_t> sums[2] = {std::vector<std::int32_t>(50'000, 1),
                                       std::vector<std::int32_t>(50'000, 2)};
  check(ncclGroupStart());
  broken[0].allReduce(data.data(), data.data(), 100, ncclSum);
  broken[1].allReduce(data.data(), data.data(), 50, ncclSum);
  for (int r = 0; r < 2; ++r) {
    whole[static_cast<std::size_t>(r)].allReduce(sums[r].data(), sums[r].data(), sums[r].size(), ncclSum);
  }
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_SAYS("AllReduce #1 sum float ×100");
  EXPECT_SAYS("AllReduce #1 sum float ×50");
  for (const auto& sum : sums) EXPECT_EQ(sum, std::vector<std::int32_t>(50'000, 3));
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(broken[1].handle(), &state));
  EXPECT_EQ(state, ncclInvalidUsage);
  check(ncclCommGetAsyncError(whole[0].handle(), &state));
  EXPECT_EQ(state, ncclSuccess);
}

TEST(Groups, ManyRanksOfOneCommunicatorByTwoThreads) {
  const ncclUniqueId id = test::newId();
  const auto body = [&](int thread) {
    ncclComm_t handles[8];
    check(ncclGroupStart());
    for (int i = 0; i < 8; ++i) check(ncclCommInitRank(&handles[i], 16, id, thread * 8 + i));
    check(ncclGroupEnd());
    std::vector<std::vector<float>> data(8, std::vector<float>(10'000, 1));
    check(ncclGroupStart());
    for (int i = 0; i < 8; ++i) {
      float* at = data[static_cast<std::size_t>(i)].data();
      check(ncclAllReduce(at, at, 10'000, ncclFloat, ncclSum, handles[i], nullptr));
    }
    check(ncclGroupEnd());
    check(ncclGroupStart());
    for (const ncclComm_t handle : handles) check(ncclCommDestroy(handle));
    check(ncclGroupEnd());
    for (const auto& values : data) {
      if (values != std::vector<float>(10'000, 16)) throw std::runtime_error("wrong sum");
    }
  };
  EXPECT_EQ(test::runThreads(2, body), test::noErrors(2));
}

TEST(Groups, DestroyInAGroupComesAfterItsOperations) {
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, 1, test::newId(), 0));
  float in = 3;
  float out = 0;
  check(ncclGroupStart());
  check(ncclCommFinalize(comm));
  check(ncclCommDestroy(comm));
  check(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, comm, nullptr));
  check(ncclGroupEnd());
  EXPECT_EQ(out, 3);
  EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidArgument);
}

TEST(Groups, DestroyingTwiceInAGroupIsRefusedAtItsEnd) {
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, 1, test::newId(), 0));
  check(ncclGroupStart());
  check(ncclCommDestroy(comm));
  check(ncclCommDestroy(comm));
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_SAYS("destroyed already");
}

TEST(Groups, AJoinIsUsableOnlyAfterTheEnd) {
  ncclComm_t comm = nullptr;
  float value = 1;
  check(ncclGroupStart());
  check(ncclCommInitRank(&comm, 1, test::newId(), 0));
  EXPECT_NE(comm, nullptr);
  EXPECT_EQ(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr), ncclInvalidArgument);
  EXPECT_SAYS("Call ncclGroupEnd first");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Groups, AJoinThatFailsDiscardsAll) {
  const ncclUniqueId id = test::newId();
  ncclComm_t comms[2];
  check(ncclGroupStart());
  check(ncclCommInitRank(&comms[0], 2, id, 1));
  check(ncclCommInitRank(&comms[1], 2, id, 1));
  EXPECT_NE(ncclGroupEnd(), ncclSuccess);
  EXPECT_SAYS("joined as rank 1");
  EXPECT_EQ(comms[0], nullptr);
  EXPECT_EQ(comms[1], nullptr);
}

}  // namespace
}  // namespace tutti
