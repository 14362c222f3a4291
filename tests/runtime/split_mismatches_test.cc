// A rank that splits where the others do something else, among threads: both calls are named, at once and on
// all ranks; and what only looks like that is left alone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/asleep.h"
#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"

namespace tutti {
namespace {

using Errors = std::vector<std::string>;

void split(Comm& comm) {
  ncclComm_t child = nullptr;
  check(ncclCommSplit(comm.handle(), 0, 0, &child, nullptr));
  check(ncclCommDestroy(child));
}

ncclResult_t shrink(Comm& comm, std::vector<int> excluded, int flags = NCCL_SHRINK_DEFAULT) {
  ncclComm_t child = nullptr;
  const ncclResult_t result = ncclCommShrink(comm.handle(), excluded.data(),
                                             static_cast<int>(excluded.size()), &child, nullptr, flags);
  if (child != nullptr) check(ncclCommDestroy(child));
  return result;
}

/// All ranks fail with ncclInvalidUsage and all these words.
void expectAllSay(const Errors& errors, const std::vector<std::string>& words) {
  for (const std::string& error : errors) {
    for (const std::string& word : words) EXPECT_NE(error.find(word), std::string::npos) << error;
  }
}

/// Each rank's part; every call must fail as ncclInvalidUsage.
Errors run(int nranks, const std::function<void(Comm&)>& body) {
  return test::runRanks(nranks, [&](Comm& comm) {
    comm.barrier();
    try {
      body(comm);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ncclInvalidUsage) << error.what();
      throw;
    }
  });
}

TEST(SplitMismatches, OneRankIsInACollective) {
  for (int other = 0; other < 3; ++other) {
    const Errors errors = run(3, [other](Comm& comm) {
      std::vector<float> data(30);
      comm.rank() == other ? comm.allReduce(data.data(), data.data(), 30, ncclSum) : split(comm);
    });
    expectAllSay(errors, {"rank " + std::to_string(other) + " (pid ", "AllReduce #2 sum float ×30",
                          "is in ncclCommSplit, after AllReduce #1 "});
  }
}

TEST(SplitMismatches, OneRankSplits) {
  for (int other = 0; other < 3; ++other) {
    const Errors errors = run(3, [other](Comm& comm) {
      std::vector<float> data(30);
      comm.rank() != other ? comm.allReduce(data.data(), data.data(), 30, ncclMax) : split(comm);
    });
    expectAllSay(errors, {"rank " + std::to_string(other) + " (pid ", "AllReduce #2 max float ×30",
                          "is in ncclCommSplit, after AllReduce #1 "});
  }
}

/// Also the one that is left out, which splits, too.
TEST(SplitMismatches, OneRankShrinks) {
  for (int other = 0; other < 3; ++other) {
    const int excluded = (other + 1) % 3;
    const Errors errors = run(3, [other, excluded](Comm& comm) {
      comm.rank() == other ? check(shrink(comm, {excluded})) : split(comm);
    });
    expectAllSay(errors, {"called different operations", "rank " + std::to_string(other) + " (pid ",
                          "ncclCommShrink, excluding rank " + std::to_string(excluded), ": ncclCommSplit"});
  }
}

TEST(SplitMismatches, ListsOfShrinksDiffer) {
  for (int other = 0; other < 3; ++other) {
    const Errors errors = run(4, [other](Comm& comm) {
      if (comm.rank() == 3) return comm.barrier();  // hears of it there
      check(shrink(comm, {comm.rank() == other ? (other + 1) % 3 : 3}));
    });
    expectAllSay(errors, {"called different operations", "ncclCommShrink, excluding rank 3"});
  }
}

/// The communicator has a fault already, which is why they shrink. Rank 1 is not waited for by rank 2, but
/// rank 0 is. Both wait when rank 2 comes: who would come after the others have refused each other would wait
/// for them to call again. When they agree, they may go on.
TEST(SplitMismatches, ListsDifferAfterAFault) {
  std::barrier step(4);
  std::array<std::atomic<pid_t>, 2> waiting{};
  const auto errors = test::runRanks(4, [&](Comm& comm) {
    comm.barrier();
    step.arrive_and_wait();  // nobody is inside that barrier any more
    if (comm.rank() != 3) {
      if (comm.rank() < 2) waiting[static_cast<std::size_t>(comm.rank())] = ::gettid();
      for (const auto& thread : waiting) {
        if (comm.rank() == 2) test::awaitAsleep(thread);
      }
      const ncclResult_t result =
          shrink(comm, comm.rank() == 2 ? std::vector<int>{1, 3} : std::vector<int>{3}, NCCL_SHRINK_ABORT);
      const std::string said = test::lastError();
      EXPECT_EQ(result, ncclInvalidUsage) << said;
      EXPECT_NE(said.find("ncclCommShrink, excluding rank 1, 3"), std::string::npos) << said;
      EXPECT_NE(said.find("ncclCommShrink, excluding rank 3"), std::string::npos) << said;
    }
    step.arrive_and_wait();
    const ncclResult_t again = comm.rank() != 3 ? shrink(comm, {3}, NCCL_SHRINK_ABORT) : ncclSuccess;
    step.arrive_and_wait();
    check(again);
  });
  EXPECT_EQ(errors, test::noErrors(4));
}

/// Ranks that are left out go ahead to the next call, and those that shrink are not all done at once.
TEST(SplitMismatches, CallsThatFollowEachOtherAreTheSame) {
  EXPECT_EQ(test::runRanks(3,
                           [](Comm& comm) {
                             for (int round = 0; round < 8; ++round) {
                               for (const int excluded : {2, 0, 1, 2}) {
                                 if (comm.rank() != excluded) check(shrink(comm, {excluded}));
                                 if (excluded == round % 3) split(comm);
                               }
                             }
                           }),
            test::noErrors(3));
}

/// They have split before: what their lines say of that is not taken for the present.
TEST(SplitMismatches, AfterOtherSplits) {
  const Errors errors = run(3, [](Comm& comm) {
    for (int round = 0; round < 20; ++round) {
      split(comm);
      comm.barrier();
    }
    comm.rank() == 2 ? comm.barrier() : split(comm);
  });
  expectAllSay(errors, {"rank 2 (pid ", "AllReduce #22 ", "is in ncclCommSplit, after AllReduce #21 "});
}

TEST(SplitMismatches, OneRankIsInATransfer) {
  for (const bool sends : {false, true}) {
    const Errors errors = run(3, [sends](Comm& comm) {
      std::vector<float> data(4'000'000);
      if (comm.rank() != 1) return split(comm);
      sends ? comm.send(data.data(), data.size(), 2) : comm.receive(data.data(), data.size(), 2);
    });
    expectAllSay(errors, {"16000000 bytes", "rank 1 (pid ", "rank 2 (pid ", "is in ncclCommSplit"});
  }
}

/// Rank 1 splits while its part of the sum is still queued: it will come, and so will the others' splits.
TEST(SplitMismatches, WhatIsQueuedBeforeTheSplitIsWaitedFor) {
  const ncclUniqueId first = test::newId();
  const ncclUniqueId second = test::newId();
  const auto errors = test::runThreads(3, [&](int rank) {
    Comm comm(3, first, rank);
    Comm other(3, second, rank);
    float value = 1;
    float sum = 1;
    if (rank == 1) {
      Stream stream;
      other.receive(&value, 1, 2, stream);
      comm.allReduce(&sum, &sum, 1, ncclSum, stream);
      split(comm);
    } else {
      if (rank == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));  // for rank 0 to have looked
        other.send(&value, 1, 1);
      }
      comm.allReduce(&sum, &sum, 1, ncclSum);
      split(comm);
    }
    if (sum != 3) throw std::runtime_error("wrong sum");
  });
  EXPECT_EQ(errors, test::noErrors(3));
}

/// The sum is on a stream: the thread that called it goes on to the split.
TEST(SplitMismatches, ACallerThatDoesNotWaitMayStillSplit) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream stream;
                             float sum = 1;
                             if (comm.rank() == 0) {
                               comm.allReduce(&sum, &sum, 1, ncclSum, stream);
                               std::this_thread::sleep_for(std::chrono::milliseconds(150));
                               split(comm);
                             } else {
                               split(comm);
                               comm.allReduce(&sum, &sum, 1, ncclSum, stream);
                             }
                             stream.synchronize();
                             if (sum != 2) throw std::runtime_error("wrong sum");
                           }),
            test::noErrors(2));
}

}  // namespace
}  // namespace tutti
