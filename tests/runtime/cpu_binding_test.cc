// Where a rank's memory and threads belong, and that a thread which was bound is let go.
#include "runtime/cpu_binding.h"
#include "runtime/core/cpu_affinity.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti {
namespace {

using Cpus = std::vector<int>;

/// Two NUMA nodes of four CPUs, a GPU below a switch of the second.
class Near : public testing::Test {
 protected:
  Near() {
    topology_.nodes.resize(4);
    for (int i = 0; i < 2; ++i) {
      topology_.nodes[static_cast<std::size_t>(i)].kind = TopologyKind::numa_node;
      topology_.nodes[static_cast<std::size_t>(i)].cpu.numa = i;
    }
    topology_.nodes[0].cpu.cpus = {0, 1, 2, 3};
    topology_.nodes[1].cpu.cpus = {4, 5, 6, 7};
    topology_.nodes[2].parent = 1;
    topology_.nodes[3] = {.kind = TopologyKind::gpu, .parent = 2};
  }
  Cpus near(int seat, const Cpus& allowed, bool ignores = false) const {
    return cpusNear(topology_, seat, allowed, ignores);
  }
  Topology topology_;
};

TEST_F(Near, TheCpusOfTheNodeThatTheProcessMayUse) {
  EXPECT_EQ(near(3, {0, 1, 2, 3, 4, 5, 6, 7}), (Cpus{4, 5, 6, 7})) << "of a GPU those of its socket";
  EXPECT_EQ(near(3, {3, 4, 6}), (Cpus{4, 6}));
}

TEST_F(Near, NothingWhereNothingIsGained) {
  EXPECT_EQ(near(1, {4, 5}), Cpus{}) << "is there already";
  EXPECT_EQ(near(1, {0, 1}), Cpus{}) << "was bound elsewhere, by somebody's will";
  EXPECT_EQ(near(kNoNode, {0, 1, 4}), Cpus{});
  topology_.nodes[1].cpu.cpus.clear();
  EXPECT_EQ(near(3, {0, 1, 4}), Cpus{});
}

TEST_F(Near, NobodyIsBoundOnAGuess) {
  topology_.nodes[2].is_guessed = true;
  EXPECT_EQ(near(3, {0, 1, 2, 3, 4, 5, 6, 7}), Cpus{}) << "below a switch whose socket nobody told";
  EXPECT_EQ(near(3, {5}, true), Cpus{});
  for (const bool ignores : {false, true}) {
    EXPECT_EQ(near(0, {0, 1, 2, 3, 4, 5, 6, 7}, ignores), Cpus{})
        << "in host memory, and free to run anywhere";
    EXPECT_EQ(near(1, {3, 4}, ignores), Cpus{});
  }
  EXPECT_EQ(near(1, {5}, true), (Cpus{4, 5, 6, 7})) << "in host memory, on one node by somebody's will";
}

TEST_F(Near, TheWillOfWhoStartedTheProcessMayBeIgnored) {
  EXPECT_EQ(near(3, {0, 1}, true), (Cpus{4, 5, 6, 7}));
  EXPECT_EQ(near(3, {5}, true), (Cpus{4, 5, 6, 7}));
}

TEST(CpuBinding, ThreadsThatAreStartedMeanwhileInheritItAndTheCallerIsLetGo) {
  const Cpus before = allowedCpus();
  if (before.size() < 2) GTEST_SKIP() << "this process may use one CPU only";
  {
    const CpuBinding binding({before[1]});
    EXPECT_TRUE(binding.isBound());
    EXPECT_EQ(allowedCpus(), (Cpus{before[1]}));
    Cpus inherited;
    std::thread([&inherited] { inherited = allowedCpus(); }).join();
    EXPECT_EQ(inherited, (Cpus{before[1]}));
  }
  EXPECT_EQ(allowedCpus(), before);
}

TEST(CpuBinding, ItMovesAndIsReleasedOnce) {
  const Cpus before = allowedCpus();
  CpuBinding binding({before[0]});
  CpuBinding other = std::move(binding);
  EXPECT_FALSE(binding.isBound());  // NOLINT(*-use-after-move, clang-analyzer-*): what it is for
  other = CpuBinding();
  EXPECT_EQ(allowedCpus(), before);
}

TEST(CpuBinding, WhatTheSystemRefusesChangesNothing) {
  const Cpus before = allowedCpus();
  const CpuBinding binding({8000});
  EXPECT_FALSE(binding.isBound());
  EXPECT_NE(binding.problem().find("sched_setaffinity: "), std::string::npos);
  EXPECT_EQ(allowedCpus(), before);
}

}  // namespace
}  // namespace tutti
