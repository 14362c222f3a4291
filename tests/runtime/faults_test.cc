// What goes wrong among threads: every rank gets an error that names who and why, in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

void expectAllSay(const std::vector<std::string>& errors, const std::string& words) {
  for (const auto& error : errors) EXPECT_NE(error.find(words), std::string::npos) << error;
}

TEST(Faults, DifferentCountsAreNamedOnBothSides) {
  const auto errors = test::runRanks(2, [](Comm& comm) {
    std::vector<float> data(100);
    comm.allReduce(data.data(), data.data(), comm.rank() == 0 ? 100 : 50, ncclSum);
  });
  expectAllSay(errors, "AllReduce #1 sum float ×100");
  expectAllSay(errors, "AllReduce #1 sum float ×50");
  // Named by rank and pid, so that the text is true on whichever rank it is read.
  expectAllSay(errors, "rank 0 (pid ");
  expectAllSay(errors, "rank 1 (pid ");
}

TEST(Faults, DifferentTypesOpsAndCollectivesAreNamed) {
  const auto types = test::runRanks(3, [](Comm& comm) {
    std::vector<float> data(100);
    comm.allReduce(data.data(), data.data(), 100, comm.rank() == 1 ? ncclInt32 : ncclFloat32, ncclSum);
  });
  expectAllSay(types, "AllReduce #1 sum int32 ×100");
  const auto ops = test::runRanks(3, [](Comm& comm) {
    std::vector<float> data(100);
    comm.allReduce(data.data(), data.data(), 100, comm.rank() == 1 ? ncclMax : ncclSum);
  });
  expectAllSay(ops, "AllReduce #1 max float ×100");
  const auto collectives = test::runRanks(3, [](Comm& comm) {
    std::vector<float> data(300);
    if (comm.rank() == 1) {
      comm.allGather(data.data() + 100, data.data(), 100);
    } else {
      comm.allReduce(data.data(), data.data(), 100, ncclSum);
    }
  });
  expectAllSay(collectives, "AllGather #1 float ×100");
}

TEST(Faults, DifferentRootsAreFoundWhileBothSend) {
  // Neither root receives: only the status board can show that they differ.
  const auto errors = test::runRanks(2, [](Comm& comm) {
    std::vector<float> data(4'000'000);
    comm.broadcast(data.data(), data.data(), data.size(), ncclFloat32, comm.rank());
  });
  expectAllSay(errors, "Broadcast #1 float ×4000000 root 0");
  expectAllSay(errors, "Broadcast #1 float ×4000000 root 1");
}

TEST(Faults, DifferentRootsOfASmallBroadcastAreFoundByBothRoots) {
  // Each root hears from all others. Who took the data of a root that it agrees with may be done by then.
  for (int last = 0; last < 3; ++last) {
    const auto errors = test::runRanks(3, [last](Comm& comm) {
      comm.barrier();
      std::this_thread::sleep_for(milliseconds(comm.rank() == last ? 50 : 0));
      auto value = static_cast<float>(comm.rank());
      comm.broadcast(&value, &value, 1, ncclFloat32, comm.rank() == 2 ? 2 : 0);
    });
    for (const std::string& found : {errors[0], errors[2]}) {
      EXPECT_NE(found.find("rank 2 (pid "), std::string::npos) << found;
      EXPECT_NE(found.find("Broadcast #2 float ×1 root 2"), std::string::npos) << found;
      EXPECT_NE(found.find("Broadcast #2 float ×1 root 0"), std::string::npos) << found;
    }
  }
}

TEST(Faults, UnreadDataOfAnotherCallIsNamedBeforeTheNextOperation) {
  const auto errors = test::runRanks(2, [](Comm& comm) {
    // Both send, neither receives; the slots hold it all. Whoever ends first may not have seen the other
    // enter.
    std::vector<float> data(100'000);
    ncclBroadcast(data.data(), data.data(), data.size(), ncclFloat32, comm.rank(), comm.handle(), nullptr);
    comm.allReduce(data.data(), data.data(), data.size(), ncclSum);
  });
  expectAllSay(errors, "the ranks called different operations");
  // Where they parted, not where it was noticed.
  expectAllSay(errors, "Broadcast #1 float ×100000 root 0");
  expectAllSay(errors, "Broadcast #1 float ×100000 root 1");
}

TEST(Faults, AbortFreesTheOthersAndTheAborter) {
  std::atomic<bool> entered{false};
  const ncclUniqueId id = test::newId();
  const auto errors = test::runThreads(3, [&](int rank) {
    Comm comm(3, id, rank);
    if (rank == 2) {
      while (!entered) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(50));
      comm.abort();
      throw std::runtime_error("rank 2 aborted");
    }
    std::vector<float> data(10);
    entered = true;
    comm.allReduce(data.data(), data.data(), 10, ncclSum);
  });
  expectAllSay(errors, "rank 2");
  expectAllSay(errors, "aborted");
}

/// Rank 0 calls `operation`, which waits for rank 1, in a group of which a second communicator tells rank 1:
/// so rank 1 does `meanwhile` when rank 0 is inside.
void whileInside(const std::function<void(Comm&)>& operation, const std::function<void(Comm&)>& meanwhile,
                 std::vector<std::string>* errors) {
  const ncclUniqueId id = test::newId();
  const ncclUniqueId second = test::newId();
  *errors = test::runThreads(2, [&](int rank) {
    Comm comm(2, id, rank);
    Comm tells(2, second, rank);
    std::int32_t word = 0;
    if (rank == 1) {
      tells.receive(&word, 1, 0);
      return meanwhile(comm);
    }
    Group group;
    operation(comm);
    tells.send(&word, 1, 1);
    group.end();
  });
}

TEST(Faults, AbortFromAnotherThreadEndsTheOperation) {
  std::atomic<ncclComm_t> of_rank_0{nullptr};
  std::vector<std::string> errors;
  float values[] = {1, 1};
  whileInside(
      [&](Comm& comm) {
        comm.allReduce(&values[0], &values[0], 1, ncclSum);
        of_rank_0 = comm.take();
      },
      [&](Comm& comm) {
        EXPECT_EQ(ncclCommAbort(of_rank_0), ncclSuccess);
        // What rank 0 had sent by then still serves one operation; the next learns of the abort from the
        // board.
        const auto call = [&] {
          return ncclAllReduce(&values[1], &values[1], 1, ncclFloat, ncclSum, comm.handle(), nullptr);
        };
        call();
        EXPECT_EQ(call(), ncclRemoteError);
        throw std::runtime_error(ncclGetLastError(nullptr));
      },
      &errors);
  expectAllSay(errors, "aborted the communicator");
}

TEST(Faults, LeavingBeforeTheOthersAreDoneIsNamed) {
  const auto errors = test::runRanks(3, [](Comm& comm) {
    comm.barrier();
    if (comm.rank() == 1)
      throw std::runtime_error("rank 1 left: destroyed its communicator after operation #1");
    comm.barrier();
  });
  expectAllSay(errors, "rank 1");
  expectAllSay(errors, "destroyed its communicator after operation #1");
}

TEST(Faults, AnErrorIsSticky) {
  const auto errors = test::runRanks(2, [](Comm& comm) {
    std::vector<float> data(10);
    const auto call = [&] {
      return ncclAllReduce(data.data(), data.data(), comm.rank() == 0 ? 10 : 5, ncclFloat, ncclSum,
                           comm.handle(), nullptr);
    };
    EXPECT_EQ(call(), ncclInvalidUsage);
    EXPECT_EQ(call(), ncclInvalidUsage);
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm.handle(), &state));
    EXPECT_EQ(state, ncclInvalidUsage);
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

ncclResult_t asyncErrorOf(const Comm& comm) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm.handle(), &state));
  return state;
}

/// Calls all-reduce until that fails, and overwrites its buffers then; "" or what was wrong.
std::string allReduceUntilFailure(Comm& comm) {
  constexpr std::size_t kCount = 4 << 20;  // large enough to be lent, not copied
  constexpr int kMark = 0x5A5A5A5A;
  std::vector<int> in(kCount, 5);
  std::vector<int> out(kCount);
  try {
    for (;;) {
      std::ranges::fill(out, 0);
      comm.allReduce(in.data(), out.data(), kCount, ncclInt32, ncclSum);
      if (std::ranges::count(out, 10) != std::ssize(out)) return "wrong values";
    }
  } catch (const Error&) {
    std::ranges::fill(in, kMark);
    std::ranges::fill(out, kMark);
    std::this_thread::sleep_for(milliseconds(2));
    return std::ranges::count(out, kMark) == std::ssize(out) ? "" : "written to after it had failed";
  }
}

void abortAfter(ncclComm_t comm, std::chrono::microseconds delay) {
  std::this_thread::sleep_for(delay);
  EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
}

TEST(Faults, NothingIsReadFromAFailedRanksBuffersNorLeftThere) {
  constexpr int kRounds = 25;
  for (int round = 0; round < kRounds; ++round) {
    const ncclUniqueId id = test::newId();
    const auto errors = test::runThreads(2, [&](int rank) {
      Comm comm(2, id, rank);
      std::thread aborter;
      if (rank == 1) aborter = std::thread(abortAfter, comm.handle(), std::chrono::microseconds(300 * round));
      const std::string problem = allReduceUntilFailure(comm);
      if (aborter.joinable()) {
        aborter.join();
        comm.take();
      }
      if (!problem.empty()) throw std::runtime_error(problem);
    });
    EXPECT_EQ(errors, test::noErrors(2)) << "round " << round;
  }
}

TEST(Faults, AnIdleRankHearsOfAnAbortAndCanStillCompleteWhatIsThere) {
  const ncclUniqueId id = test::newId();
  const auto errors = test::runThreads(3, [&](int rank) {
    Comm comm(3, id, rank);
    std::int32_t word = rank;
    if (rank == 2) {
      for (const int peer : {0, 1}) comm.receive(&word, 1, peer);
      word = 2;
      for (const int peer : {0, 1}) comm.send(&word, 1, peer);
      check(ncclCommAbort(comm.take()));
      return;
    }
    EXPECT_EQ(asyncErrorOf(comm), ncclSuccess);
    comm.send(&word, 1, 2);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (asyncErrorOf(comm) == ncclSuccess && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(asyncErrorOf(comm), ncclRemoteError);
    comm.receive(&word, 1, 2);
    EXPECT_EQ(word, 2);
    EXPECT_EQ(ncclAllReduce(&word, &word, 1, ncclInt32, ncclSum, comm.handle(), nullptr), ncclRemoteError);
  });
  EXPECT_EQ(errors, test::noErrors(3));
}

TEST(Faults, ARankThatLeftIsNoError) {
  const ncclUniqueId id = test::newId();
  std::atomic<bool> has_left{false};
  const auto errors = test::runThreads(2, [&](int rank) {
    Comm comm(2, id, rank);
    comm.barrier();
    if (rank == 1) {
      check(ncclCommDestroy(comm.take()));
      has_left = true;
      return;
    }
    while (!has_left) std::this_thread::yield();
    EXPECT_EQ(asyncErrorOf(comm), ncclSuccess);
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

TEST(Faults, AFinalizedRankIsIndependentOfTheOthers) {
  const ncclUniqueId id = test::newId();
  std::atomic<bool> has_aborted{false};
  const auto errors = test::runThreads(2, [&](int rank) {
    Comm comm(2, id, rank);
    comm.barrier();
    if (rank == 1) {
      check(ncclCommAbort(comm.take()));
      has_aborted = true;
      return;
    }
    while (!has_aborted) std::this_thread::yield();
    EXPECT_EQ(asyncErrorOf(comm), ncclRemoteError);
    check(ncclCommFinalize(comm.handle()));
    EXPECT_EQ(asyncErrorOf(comm), ncclSuccess);
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

TEST(Faults, TwoThreadsInOneCommunicatorAreRefused) {
  std::atomic<ncclComm_t> of_rank_0{nullptr};
  std::vector<std::string> errors;
  float values[] = {1, 1};
  whileInside(
      [&](Comm& comm) {
        of_rank_0 = comm.handle();
        comm.allReduce(&values[0], &values[0], 1, ncclSum);
      },
      [&](Comm& comm) {
        float other = 1;
        EXPECT_EQ(ncclAllReduce(&other, &other, 1, ncclFloat, ncclSum, of_rank_0, nullptr), ncclInvalidUsage);
        EXPECT_EQ(ncclCommDestroy(of_rank_0), ncclInvalidUsage);
        comm.allReduce(&values[1], &values[1], 1, ncclSum);
      },
      &errors);
  EXPECT_EQ(errors, test::noErrors(2));
}

TEST(Faults, RanksThatDisagreeOnTheirNumber) {
  const ncclUniqueId id = test::newId();
  const auto errors = test::runThreads(2, [&](int rank) { const Comm comm(rank == 0 ? 2 : 3, id, rank); });
  expectAllSay(errors, "the ranks disagree on their number");
  expectAllSay(errors, "3");
}

TEST(Faults, TwoRanksOfOneNumber) {
  const ncclUniqueId id = test::newId();
  const auto errors = test::runThreads(2, [&](int) { const Comm comm(2, id, 1); });
  expectAllSay(errors, "joined as rank 1");
}

}  // namespace
}  // namespace tutti
