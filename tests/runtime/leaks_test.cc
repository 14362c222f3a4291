// Communicators come and go, in good order or by a fault: nothing of them stays. This process is rank 0; the
// others are processes of rank_program, on its host or on a pretended other one.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/rank_group.h"
#include "tests/harness/resources.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Command;
using test::IdFile;
using test::Resources;

constexpr int kTimes = test::kCountsMemory ? 20 : 6;  ///< slower under sanitizers, and no memory is counted
constexpr int kWarmUp = 4;                            ///< the first times, the C library takes what it keeps

/// Does it kTimes, each in a thread of its own, and expects that nothing stays.
void expectNothingStays(const std::function<void()>& use, int times = kTimes) {
  ::mallopt(M_ARENA_MAX, 1);  // arenas of threads would be mappings that stay
  const Resources before = Resources::now();
  Resources warm = before;
  for (int i = 0; i < times; ++i) {
    std::thread(use).join();
    if (i < kWarmUp) warm = Resources::after(before, seconds(5));
  }
  const Resources after = Resources::after(before, seconds(60));
  const std::string text =
      "before: " + before.text() + "\nafter " + std::to_string(times) + " times: " + after.text();
  std::printf("%s\n", text.c_str());
  EXPECT_LE(after.fds, before.fds) << text;
  EXPECT_LE(after.threads, before.threads) << text;
  EXPECT_LE(after.shared_mappings, before.shared_mappings) << text;
  if (!test::kCountsMemory) return;
  EXPECT_LE(after.mappings, warm.mappings + 4) << text;
  EXPECT_LE(after.resident_kib, warm.resident_kib + 4096) << text;
}

TEST(Leaks, RanksAsThreads) {
  expectNothingStays([] {
    const auto errors = test::runRanks(4, [](Comm& comm) { test::conform(comm, 3, 10, 20'000); });
    EXPECT_EQ(errors, test::noErrors(4));
  });
}

TEST(Leaks, AThousandOneAfterTheOther) {
  expectNothingStays(
      [] {
        for (int i = 0; i < (test::kCountsMemory ? 50 : 10); ++i) {
          ncclComm_t comm = nullptr;
          check(ncclCommInitAll(&comm, 1, nullptr));
          check(ncclCommDestroy(comm));
        }
      },
      20);
}

TEST(Leaks, SixtyFourAtOnce) {
  expectNothingStays(
      [] {
        std::vector<ncclComm_t> comms(64);
        for (std::size_t i = 0; i < comms.size(); i += 2) check(ncclCommInitAll(&comms[i], 2, nullptr));
        std::vector<float> values(comms.size(), 1);
        check(ncclGroupStart());
        for (std::size_t i = 0; i < comms.size(); ++i) {
          check(ncclAllReduce(&values[i], &values[i], 1, ncclFloat, ncclSum, comms[i], nullptr));
        }
        check(ncclGroupEnd());
        EXPECT_EQ(values, std::vector<float>(comms.size(), 2));
        for (const ncclComm_t comm : comms) check(ncclCommDestroy(comm));
      },
      kWarmUp + 2);
}

TEST(Leaks, SplitAndShrunk) {
  expectNothingStays(
      [] {
        const auto errors = test::runRanks(3, [](Comm& comm) {
          ncclComm_t child = nullptr;
          check(ncclCommSplit(comm.handle(), comm.rank() % 2, 0, &child, nullptr));
          check(ncclCommDestroy(child));
          int excluded = 0;
          if (comm.rank() == excluded) return comm.barrier();
          check(ncclCommShrink(comm.handle(), &excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
          check(ncclCommDestroy(child));
          comm.barrier();
        });
        EXPECT_EQ(errors, test::noErrors(3));
      },
      kWarmUp + 6);
}

/// The other ranks, in processes; this process is rank 0.
class Others {
 public:
  Others(int nranks, bool on_other_host, const std::vector<std::string>& arguments) : nranks_(nranks) {
    std::vector<std::string> argv{"rank_program"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    for (int rank = 1; rank < nranks; ++rank) {
      test::Environment environment{{"TUTTI_RANK", std::to_string(rank)},
                                    {"TUTTI_WORLD_SIZE", std::to_string(nranks)},
                                    {"TUTTI_ID_FILE", id_.path()}};
      if (on_other_host) environment["NCCL_HOSTID"] = "other";
      ranks_.push_back(std::make_unique<Command>(argv, environment));
    }
  }

  Comm join() {
    ncclUniqueId id;
    std::ifstream(id_.path(), std::ios::binary).read(id.internal, sizeof(id.internal));
    return Comm(nranks_, id, 0);
  }
  Command& last() { return *ranks_.back(); }
  void expectSuccess() {
    for (auto& rank : ranks_) {
      const auto result = rank->wait(seconds(60));
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
  }

 private:
  IdFile id_;
  int nranks_;
  std::vector<std::unique_ptr<Command>> ranks_;
};

class LeaksBetween : public testing::TestWithParam<bool> {};

TEST_P(LeaksBetween, InGoodOrder) {
  expectNothingStays([] {
    Others others(3, GetParam(), {"conform-briefly", "3"});
    {
      Comm comm = others.join();
      test::conform(comm, 3, 10, 20'000);
    }
    others.expectSuccess();
  });
}

void expectError(const std::function<void()>& body, const std::string& words) {
  try {
    body();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST_P(LeaksBetween, APeerIsKilled) {
  expectNothingStays([] {
    Others others(3, GetParam(), {"loop"});
    Comm comm = others.join();
    std::vector<float> data(100'000);
    std::thread killer([&] {
      std::this_thread::sleep_for(milliseconds(20));
      others.last().kill(SIGKILL);
    });
    expectError(
        [&] {
          for (;;) comm.allReduce(data.data(), data.data(), data.size(), ncclMax);
        },
        "rank 2 (pid ");
    killer.join();
  });
}

TEST_P(LeaksBetween, TheRanksDiffer) {
  expectNothingStays([] {
    Others others(3, GetParam(), {"differ", "count"});
    Comm comm = others.join();
    std::vector<std::int32_t> data(1000);
    expectError(
        [&] {
          comm.barrier();
          comm.allReduce(data.data(), data.data(), data.size(), ncclSum);
        },
        "different operations");
  });
}

TEST_P(LeaksBetween, AbortedWhileAThreadIsInside) {
  expectNothingStays([] {
    Others others(2, GetParam(), {"absent", "1"});
    Comm comm = others.join();
    float value = 1;
    ncclComm_t handle = comm.take();
    std::thread aborter([&] {
      std::this_thread::sleep_for(milliseconds(30));
      EXPECT_EQ(ncclCommAbort(handle), ncclSuccess);
    });
    EXPECT_NE(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, handle, nullptr), ncclSuccess);
    aborter.join();
  });
}

INSTANTIATE_TEST_SUITE_P(Processes, LeaksBetween, testing::Bool(), [](const auto& on_other_host) {
  return on_other_host.param ? "OfTwoHosts" : "OfOneHost";
});

/// In a process of its own, since settings are read once: nobody else comes, and the thread that makes it
/// ends at TUTTI_INIT_TIMEOUT.
[[noreturn]] void abortWhileItIsBeingMade() {
  ::setenv("TUTTI_INIT_TIMEOUT", "5", 1);
  expectNothingStays(
      [] {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        ncclComm_t comm = nullptr;
        EXPECT_EQ(ncclCommInitRankConfig(&comm, 2, test::newId(), 0, &config), ncclInProgress);
        std::this_thread::sleep_for(milliseconds(10));
        EXPECT_EQ(ncclCommAbort(comm), ncclSuccess);
      },
      2);
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(Leaks, AbortedWhileItIsBeingMade) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(abortWhileItIsBeingMade(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tutti
