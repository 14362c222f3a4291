// Which cores ranks are bound to, on machines as sysfs shows them.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <string>

#include "tests/harness/scratch_directory.h"
#include "tools/run/cores.h"

namespace tutti::run {
namespace {

using Sets = std::vector<std::vector<int>>;

class RunCores : public testing::Test {
 protected:
  void add(int cpu, int node, const std::string& cache, const std::string& threads) {
    const std::string folder = "cpu/cpu" + std::to_string(cpu);
    std::filesystem::create_directories(system_.path() + "/" + folder + "/topology");
    std::filesystem::create_directories(system_.path() + "/" + folder + "/node" + std::to_string(node));
    system_.write(folder + "/topology/thread_siblings_list", threads + "\n");
    addCache(folder, 0, "1", threads);
    addCache(folder, 1, "2", threads);
    addCache(folder, 2, "3", cache);
  }
  void addCache(const std::string& folder, int index, const std::string& level, const std::string& sharing) {
    const std::string at = folder + "/cache/index" + std::to_string(index);
    std::filesystem::create_directories(system_.path() + "/" + at);
    system_.write(at + "/level", level + "\n");
    system_.write(at + "/shared_cpu_list", sharing + "\n");
  }
  /// Two NUMA nodes whose CPUs are numbered in turn, two caches each, cores of two threads:
  ///
  ///   node 0   cache 0: cores 0/16 4/20    cache 2: cores 2/18 6/22
  ///   node 1   cache 1: cores 1/17 5/21    cache 3: cores 3/19 7/23
  void addTwoNodes() {
    const std::string caches[] = {"0,4,16,20", "1,5,17,21", "2,6,18,22", "3,7,19,23"};
    for (const int cpu : {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}) {
      const int first = cpu % 16;
      add(cpu, first % 2, caches[first % 4], std::to_string(first) + "," + std::to_string(first + 16));
      cpus_.push_back(cpu);
    }
  }
  Sets coresOf(BindTo to, int ranks) const { return coresOfRanks(to, ranks, cpus_, system_.path()); }

  const test::ScratchDirectory system_;
  std::vector<int> cpus_;
};

TEST(RunCoresByDefault, RanksInHostMemoryStayAtTheirNode) {
  EXPECT_EQ(bindByDefault(DeviceChoice::automatic, false), BindTo::numa);
  EXPECT_EQ(bindByDefault(DeviceChoice::automatic, true), BindTo::none);
  EXPECT_EQ(bindByDefault(DeviceChoice::host, true), BindTo::numa);
  EXPECT_EQ(bindByDefault(DeviceChoice::cuda, false), BindTo::none);
}

TEST_F(RunCores, NeighboursShareCachesAndThenNodes) {
  addTwoNodes();
  EXPECT_EQ(coresOf(BindTo::core, 8), (Sets{{0}, {4}, {2}, {6}, {1}, {5}, {3}, {7}}));
  EXPECT_EQ(coresOf(BindTo::core, 2), (Sets{{0}, {4}}));
}

TEST_F(RunCores, SecondThreadsComeLastAndThenCoresAreShared) {
  addTwoNodes();
  const Sets sets = coresOf(BindTo::core, 18);
  EXPECT_EQ(sets[8], (std::vector{16}));
  EXPECT_EQ(sets[15], (std::vector{23}));
  EXPECT_EQ(sets[16], (std::vector{0}));
}

TEST_F(RunCores, PartsAreDividedInBlocksOfRanks) {
  addTwoNodes();
  const std::vector<int> node0{0, 2, 4, 6, 16, 18, 20, 22};
  const std::vector<int> node1{1, 3, 5, 7, 17, 19, 21, 23};
  EXPECT_EQ(coresOf(BindTo::numa, 4), (Sets{node0, node0, node1, node1}));
  EXPECT_EQ(coresOf(BindTo::numa, 3), (Sets{node0, node0, node1}));
  EXPECT_EQ(coresOf(BindTo::cache, 4),
            (Sets{{0, 4, 16, 20}, {2, 6, 18, 22}, {1, 5, 17, 21}, {3, 7, 19, 23}}));
  EXPECT_EQ(coresOf(BindTo::cache, 2), (Sets{{0, 4, 16, 20}, {1, 5, 17, 21}}));
}

TEST_F(RunCores, OnlyWhatThisProcessMayUse) {
  addTwoNodes();
  cpus_ = {3, 5, 6, 21};
  EXPECT_EQ(coresOf(BindTo::core, 4), (Sets{{6}, {5}, {3}, {21}}));
  EXPECT_EQ(coresOf(BindTo::numa, 2), (Sets{{6}, {3, 5, 21}}));
}

TEST_F(RunCores, WhatTheSystemHidesIsOnePart) {
  cpus_ = {0, 1, 2};
  EXPECT_EQ(coresOf(BindTo::core, 3), (Sets{{0}, {1}, {2}}));
  EXPECT_EQ(coresOf(BindTo::cache, 2), (Sets{{0, 1, 2}, {0, 1, 2}}));
}

}  // namespace
}  // namespace tutti::run
