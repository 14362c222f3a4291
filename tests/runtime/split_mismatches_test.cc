// A rank that splits where the others do something else, among threads: both calls are named, at once and on
// all ranks; and what only looks like that is left alone.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

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
