// The fibre runner: strands that wait for one another in one thread.
#include "kernels/host/fibre_runner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Trips the fault cell once a wait has lasted for `limit`.
class Deadline final : public WaitMonitor {
 public:
  Deadline(FaultCell& fault, nanoseconds limit) : fault_(fault), limit_(limit) {}
  void inspect(int peer, nanoseconds waited) override {
    ++inspections_;
    if (waited >= limit_) fault_.trip(ncclRemoteError, "waited too long for " + std::to_string(peer));
  }
  void differs(int, const Descriptor&) override {}
  bool isLending(int) override { return true; }
  int inspections() const { return inspections_; }

 private:
  FaultCell& fault_;
  nanoseconds limit_;
  int inspections_ = 0;
};

/// What strand i does in passBatons().
void passBaton(const WaitContext& wait, std::size_t i, int rounds, std::vector<int>& counts) {
  const std::size_t left = (i + counts.size() - 1) % counts.size();
  for (int k = 1; k <= rounds; ++k) {
    const int needed = i == 0 ? k - 1 : k;
    if (!wait.until(static_cast<int>(left), [&] { return counts[left] >= needed; })) return;
    counts[i] = k;
  }
}

/// Counters in a ring: strand i waits until its left neighbour has counted to k, then counts to k itself.
template <class Runner>
bool passBatons(Runner& runner, std::size_t strands, int rounds, nanoseconds limit) {
  FaultCell fault;
  Deadline monitor(fault, limit);
  std::vector<int> counts(strands, 0);
  for (std::size_t i = 0; i < strands; ++i) {
    runner.add([&, i](WaitScheduler* scheduler) {
      passBaton({fault, monitor, 0, scheduler}, i, rounds, counts);
    });
  }
  runner.run();
  for (const int count : counts) {
    if (count != rounds) return false;
  }
  return true;
}

TEST(FibreRunner, StrandsThatNeedEachOtherAllEnd) {
  for (const std::size_t strands : {2U, 3U, 17U, 300U}) {
    FibreRunner runner(0);
    EXPECT_TRUE(passBatons(runner, strands, 50, std::chrono::seconds(60))) << strands;
  }
}

/// The bug that the runner's construction rules out: a question is asked when its wait starts, and then only
/// if somebody says so; nobody does.
class ForgetfulRunner final : public FibreRunner {
 public:
  using FibreRunner::FibreRunner;

 protected:
  bool ask(std::size_t /*strand*/, const ReadyQuestion& /*ready*/) override { return false; }
};

TEST(FibreRunner, ARunnerThatDoesNotAskAgainIsFound) {
  ForgetfulRunner runner(0);
  EXPECT_FALSE(passBatons(runner, 3, 50, milliseconds(100)));
}

/// Hears each of the numbers up to 200 that another thread tells.
void hearAll(const WaitContext& wait, const std::atomic<int>& told, std::atomic<int>& heard) {
  for (int k = 1; k <= 200; ++k) {
    const bool is_told = wait.until(0, [&] { return told.load(std::memory_order_acquire) >= k; });
    heard.fetch_add(is_told ? 1 : 0, std::memory_order_acq_rel);
  }
}

TEST(FibreRunner, AnotherThreadsWordIsHeard) {
  FaultCell fault;
  Deadline monitor(fault, std::chrono::seconds(60));
  std::atomic<int> told{0};
  std::atomic<int> heard{0};
  std::thread teller([&] {
    for (int k = 1; k <= 200; ++k) {
      if (k % 50 == 0) std::this_thread::sleep_for(milliseconds(5));  // long enough for the runner to sleep
      told.store(k, std::memory_order_release);
      while (heard.load(std::memory_order_acquire) < 2 * k) std::this_thread::yield();
    }
  });
  FibreRunner runner(30);
  for (int i = 0; i < 2; ++i) {
    runner.add([&](WaitScheduler* scheduler) { hearAll({fault, monitor, 30, scheduler}, told, heard); });
  }
  runner.run();
  teller.join();
  EXPECT_EQ(heard, 400);
}

TEST(FibreRunner, AStrandStartsAfterTheOneItDependsOn) {
  std::string order;
  FibreRunner runner(0);
  FaultCell fault;
  Deadline monitor(fault, std::chrono::seconds(60));
  bool may_end = false;
  const auto first = runner.add([&](WaitScheduler* scheduler) {
    const WaitContext wait{fault, monitor, 0, scheduler};
    wait.until(0, [&] { return may_end; });
    order += 'a';
  });
  const auto second = runner.add([&](WaitScheduler*) { order += 'b'; }, first);
  runner.add([&](WaitScheduler*) { order += 'c'; }, second);
  runner.add([&](WaitScheduler*) {
    order += 'd';
    may_end = true;
  });
  runner.run();
  EXPECT_EQ(order, "dabc");
}

TEST(FibreRunner, OneStrandRunsInPlace) {
  FibreRunner runner(0);
  bool ran = false;
  runner.add([&, thread = std::this_thread::get_id()](WaitScheduler* scheduler) {
    EXPECT_EQ(scheduler, nullptr);
    EXPECT_EQ(thread, std::this_thread::get_id());
    ran = true;
  });
  runner.run();
  EXPECT_TRUE(ran);
}

TEST(FibreRunner, AFaultEndsItsOwnWaitsOnly) {
  FaultCell broken;
  FaultCell whole;
  Deadline impatient(broken, milliseconds(50));
  Deadline patient(whole, std::chrono::seconds(60));
  bool arrived = false;
  bool failed = false;
  bool succeeded = false;
  FibreRunner runner(0);
  runner.add([&](WaitScheduler* scheduler) {
    const WaitContext wait{broken, impatient, 0, scheduler};
    failed = !wait.until(7, [] { return false; });
    arrived = true;
  });
  runner.add([&](WaitScheduler* scheduler) {
    const WaitContext wait{whole, patient, 0, scheduler};
    succeeded = wait.until(1, [&] { return arrived; });
  });
  runner.run();
  EXPECT_TRUE(failed);
  EXPECT_TRUE(succeeded);
  EXPECT_EQ(broken.message(), "waited too long for 7");
  EXPECT_FALSE(whole.tripped());
}

TEST(FibreRunner, ABusyStrandDoesNotKeepTheOthersFromTheirDeadlines) {
  FaultCell fault;
  FaultCell none;
  Deadline impatient(fault, milliseconds(50));
  Deadline patient(none, std::chrono::seconds(60));
  FibreRunner runner(0);
  runner.add([&](WaitScheduler* scheduler) {
    const WaitContext wait{fault, impatient, 0, scheduler};
    EXPECT_FALSE(wait.until(1, [] { return false; }));
  });
  runner.add([&](WaitScheduler* scheduler) {
    // Every wait of this one ends with the next round: the thread is never idle.
    const WaitContext wait{none, patient, 0, scheduler};
    while (!fault.tripped()) {
      int asked = 0;
      ASSERT_TRUE(wait.until(2, [&] { return ++asked > 1; }));
    }
  });
  runner.run();
  EXPECT_EQ(patient.inspections(), 0);
}

TEST(FibreRunner, AnExceptionReachesTheCallerAfterAllHaveEnded) {
  for (const int strands : {1, 3}) {
    FibreRunner runner(0);
    int ended = 0;
    runner.add([&](WaitScheduler*) {
      ++ended;
      throw std::runtime_error("first");
    });
    for (int i = 1; i < strands; ++i) {
      runner.add([&](WaitScheduler*) {
        ++ended;
        throw std::runtime_error("later");
      });
    }
    try {
      runner.run();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "first");
    }
    EXPECT_EQ(ended, strands);
  }
}

TEST(FibreRunner, StacksAreUsedAgain) {
  const auto useDeeply = [](int depth, const auto& self) -> int {
    volatile char frame[256] = {};
    frame[depth % 256] = 1;
    return depth == 0 ? frame[0] : self(depth - 1, self) + frame[depth % 256];
  };
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    FibreRunner runner(0);
    for (int i = 0; i < 5; ++i) {
      const int depth = static_cast<int>(random() % 50);
      runner.add([&, depth](WaitScheduler*) { EXPECT_EQ(useDeeply(depth, useDeeply), depth + 1); });
    }
    runner.run();
  }
}

}  // namespace
}  // namespace tutti
