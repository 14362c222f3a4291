// What the topology decides, in ranks as processes: the order round rings, and where threads belong.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/harness/rank_group.h"
#include "tests/harness/scratch_directory.h"

namespace tutti {
namespace {

using test::expectSays;
using test::expectSuccess;
using Group = test::RankGroup;

class ClusterUse : public testing::Test {
 protected:
  static void expectLogged(const std::vector<test::CommandResult>& results, const std::string& words) {
    EXPECT_NE((results[0].out + results[0].err).find(words), std::string::npos)
        << "lacks \"" << words << "\":\n"
        << results[0].err;
  }
  const test::ScratchDirectory directory_;
};

TEST_F(ClusterUse, RingsOfAGraphFile) {
  const std::string file = directory_.write("graph.xml", R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" speedinter="20" latencyinter="0" typeintra="LOC"
         typeinter="PIX" samechannels="0">
    <channel><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><gpu dev="3"/></channel>
    <channel><gpu dev="3"/><gpu dev="1"/><gpu dev="0"/><gpu dev="2"/></channel>
  </graph>
</graphs>
)");
  Group group(4, {"conform", "31"},
              {{"NCCL_GRAPH_FILE", file},
               {"TUTTI_PLAN", "ring"},
               {"TUTTI_LANES", "3"},
               {"TUTTI_SLOT_BYTES", "1024"},
               {"NCCL_DEBUG", "INFO"},
               {"NCCL_DEBUG_SUBSYS", "GRAPH"}});
  const auto results = group.wait();
  expectSuccess(results);
  expectLogged(results, "Channel 00/02 : 0 2 1 3\n");
  expectLogged(results, "Channel 01/02 : 3 1 0 2\n");
}

TEST_F(ClusterUse, RingsPassEachHostOnce) {
  // Ranks are dealt to hosts in turn: in the order of their numbers every step would cross the network.
  Group group(4, {"conform", "32"},
              {{"TUTTI_PLAN", "ring"}, {"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "GRAPH"}},
              {{0, {{"NCCL_HOSTID", "a"}}},
               {1, {{"NCCL_HOSTID", "b"}}},
               {2, {{"NCCL_HOSTID", "a"}}},
               {3, {{"NCCL_HOSTID", "b"}}}});
  const auto results = group.wait();
  expectSuccess(results);
  expectLogged(results, ": 0 2 1 3\n");
}

TEST_F(ClusterUse, RulesThatDifferAreNamed) {
  for (const char* name : {"NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"}) {
    Group group(2, {"conform", "1"}, {}, {{1, {{name, "PIX"}}}});
    for (const auto& result : group.wait()) {
      expectSays(result, std::string(name) + " differs between rank 0 (pid ");
    }
  }
}

TEST_F(ClusterUse, AGraphFileThatIsNoneIsRefused) {
  Group group(1, {"conform", "1"}, {{"NCCL_GRAPH_FILE", directory_.write("graph.xml", "<graphs version=")}});
  const auto result = group.wait()[0];
  expectSays(result, "NCCL_GRAPH_FILE: " + directory_.path() + "/graph.xml:1: ");
  expectSays(result, "Correct it, or unset NCCL_GRAPH_FILE");
}

TEST_F(ClusterUse, RingsAreDumpedByOneRank) {
  const std::string path = directory_.path() + "/dump.xml";
  Group group(2, {"conform", "1"}, {{"NCCL_GRAPH_DUMP_FILE", path}, {"NCCL_GRAPH_DUMP_FILE_RANK", "1"}});
  expectSuccess(group.wait());
  std::ifstream stream(path);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  EXPECT_NE(text.find("pattern=\"4\""), std::string::npos) << text;
}

/// What the system says of the CPUs that each thread of a process may run on, the first thread's first.
std::vector<std::string> cpusOfThreads(int pid) {
  std::vector<std::string> cpus;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("Cpus_allowed_list:")) continue;
      const bool is_first = task.path().filename() == std::to_string(pid);
      cpus.insert(is_first ? cpus.begin() : cpus.end(), line.substr(line.find('\t') + 1));
    }
  }
  return cpus;
}

/// Binds this process, and those that it starts, to a CPU, and lets it go.
class BoundTo {
 public:
  explicit BoundTo(int cpu) {
    ::sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    works_ = ::sched_setaffinity(0, sizeof(set), &set) == 0;
  }
  BoundTo(const BoundTo&) = delete;
  BoundTo& operator=(const BoundTo&) = delete;
  ~BoundTo() { ::sched_setaffinity(0, sizeof(before_), &before_); }
  bool works() const { return works_; }

 private:
  cpu_set_t before_;
  bool works_;
};

TEST_F(ClusterUse, ThreadsOfTheLibraryStayOnTheRanksNodeAndTheCallersIsLetGo) {
  const std::string file = directory_.write("topology.xml", R"(<system version="1">
  <cpu numaid="0" affinity="00000003" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"/>
  <cpu numaid="1" affinity="00000004" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"/>
</system>
)");
  for (const int cpu : {0, 1}) {
    const BoundTo bound(cpu);
    if (!bound.works()) GTEST_SKIP() << "this process may not use CPUs 0 and 1";
    Group group(2, {"loop"}, {{"NCCL_TOPO_FILE", file}, {"NCCL_IGNORE_CPU_AFFINITY", "1"}}, {}, 2);
    group.waitUntilReady();
    const auto cpus = cpusOfThreads(group[0].pid());
    ASSERT_GE(cpus.size(), 2U) << "the Watcher";
    EXPECT_EQ(cpus[0], std::to_string(cpu));
    EXPECT_EQ(cpus[1], "0-1");
    for (int rank = 0; rank < 2; ++rank) group[rank].kill(SIGKILL);
  }
}

TEST_F(ClusterUse, ARankInHostMemoryThatMayRunOnSeveralNodesIsNotBound) {
  const std::string file = directory_.write("topology.xml", R"(<system version="1">
  <cpu numaid="0" affinity="00000001" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"/>
  <cpu numaid="1" affinity="00000002" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"/>
</system>
)");
  Group group(2, {"loop"}, {{"NCCL_TOPO_FILE", file}}, {}, 2);
  group.waitUntilReady();
  const auto cpus = cpusOfThreads(group[0].pid());
  ASSERT_GE(cpus.size(), 2U) << "the Watcher";
  for (const std::string& each : cpus) EXPECT_EQ(each, cpus[0]);
  for (int rank = 0; rank < 2; ++rank) group[rank].kill(SIGKILL);
}

}  // namespace
}  // namespace tutti
