// The whole ring: two hosts of two ranks each, on host memory (shared memory inside, RDMA between) and on
// emulated GPUs (CUDA IPC inside, RDMA between).
//
// Reference runs before, outside the guest, with TCP between the hosts, and keeps what came out. So kernels
// are translated, too, which would take for ever under QEMU. Ring runs in the guest: the same bits must come
// out. The guest has four hosts, for Switch.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/rank_group.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;
using Arguments = std::vector<std::string>;

constexpr int kSteps = 5;
/// What programs can work on in this build.
Arguments memories() { return TUTTI_HAS_GPUS ? Arguments{"host", "cuda"} : Arguments{"host"}; }

std::string contentOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

int count(const std::string& text, const std::string& expression) {
  const std::regex wanted(expression);
  return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), wanted), {}));
}

/// Runs of four ranks on two hosts, with `net` between them; their log is apart from what they print.
class FourRanks : public testing::Test {
 protected:
  explicit FourRanks(std::string net) : net_(std::move(net)) {}

  /// `program` on `memory`, which must succeed. Host h has the RDMA device hHr0.
  std::string run(const std::string& memory, const std::string& program, const Arguments& arguments,
                  const std::map<std::string, std::string>& more = {}) {
    Arguments all{"tutti-run", "-n", "4", "--hosts", "2"};
    if (memory == "cuda") all.insert(all.end(), {"--emulate-gpus", "2"});
    all.insert(all.end(), {"sh", "-c", R"(NCCL_IB_HCA="=h${NODE_RANK}r0" exec "$0" "$@")"});
    all.push_back(programFolder() + "/" + program);
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::map<std::string, std::string> environment{
        {"NCCL_NET", net_},       {"NCCL_ALGO", "Ring"},
        {"NCCL_DEBUG", "INFO"},   {"NCCL_DEBUG_FILE", log_.path() + "/log"},
        {"TUTTI_DEVICE", memory}, {"TUTTI_EMULATOR_CHECK_LEAKS", "1"}};
    environment.insert(more.begin(), more.end());
    const CommandResult result = runCommand(all, environment, seconds(240));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err << contentOf(log_.path() + "/log");
    EXPECT_EQ(result.err, "");
    expectLinks(memory);
    return result.out;
  }

  /// Where ranks on GPUs are to say that the slots of RDMA links lie; a regular expression.
  void expectSlotsIn(std::string place) { slot_place_ = std::move(place); }

  /// All four said how they reach the one on their host, and the two on the other.
  void expectLinks(const std::string& memory) {
    const std::string log = contentOf(log_.path() + "/log");
    const std::string between = net_ == "IB" ? R"(RDMA \(h[01]r0:1\))" : "tcp";
    if (memory == "cuda") {
      EXPECT_EQ(count(log, R"(rank \d by CUDA IPC)"), 4) << log;
      EXPECT_EQ(count(log, R"(ranks \d-\d by network \()" + between + R"(\))"), 4) << log;
      EXPECT_EQ(count(log, "slots of RDMA in " + slot_place_), net_ == "IB" ? 4 : 0) << log;
    } else {
      EXPECT_EQ(count(log, R"(joined a communicator of 4 on 2 host\(s\): 1 peer\(s\) by shm)"), 4) << log;
      EXPECT_EQ(count(log, R"(2 peer\(s\) on 1 other host\(s\) by )" + between), 4) << log;
    }
    EXPECT_GT(count(log, ": ring over slots of"), 0) << log;
    last_log_ = log;
    std::filesystem::remove(log_.path() + "/log");
  }

  /// What all ranks agree on after the last step.
  std::string hashAfterTraining(const std::string& memory) {
    const std::string report = log_.path() + "/report.json";
    const std::string steps = std::to_string(kSteps);
    const std::string out = run(memory, "tutti-train",
                                {"--device", memory, "--steps", steps, "--hidden", "24", "--embedding", "6",
                                 "--context", "4", "--batch", "16", "--json", report});
    EXPECT_NE(out.find("replicas identical after every step: yes (5/5)"), std::string::npos) << out;
    const auto document = nlohmann::json::parse(contentOf(report), nullptr, false);
    const auto hashes = document["steps"][kSteps]["hashes"].get<Arguments>();
    EXPECT_EQ(hashes, Arguments(4, hashes.at(0)));
    EXPECT_EQ(document["steps"][kSteps]["distinct_gradients"], 4);
    return hashes.at(0);
  }

  /// What the ranks of the last run had to log.
  const std::string& log() const { return last_log_; }
  std::string logNow() const { return contentOf(log_.path() + "/log"); }

  /// Every type and operation, on values whose sums depend on the order.
  std::string bits(const std::string& memory, const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> environment{
        {"TUTTI_LANES", "2"}, {"TUTTI_SLOT_BYTES", "4096"}, {"TUTTI_EMULATED_GPUS", "2"}};
    environment.insert(more.begin(), more.end());
    const std::string out =
        run(memory, "gpu_rank_program", {"bits", memory == "cuda" ? "gpu" : "host"}, environment);
    std::set<std::string> lines;  // of the ranks, in whatever order
    std::istringstream stream(out);
    for (std::string line; std::getline(stream, line);) {
      if (line.find("] bits ") != std::string::npos) lines.insert(line);
    }
    EXPECT_EQ(lines.size(), 4U) << out;
    std::string all;
    for (const std::string& line : lines) all += (all.empty() ? "" : " ") + line;
    return all;
  }

  /// 1 KiB to 64 KiB; every value is checked.
  void allReduce(const std::string& memory, const std::map<std::string, std::string>& more = {}) {
    const std::string out = run(memory, "all_reduce_perf",
                                {"--device", memory, "-b", "1K", "-e", "64K", "-f", "64", "-n", "2"}, more);
    EXPECT_EQ(count(out, R"(\n\[0\] +\d+ +\d+ +float +sum +-1( +[0-9.]+){3} +0( +[0-9.]+){3} +0(?=\n))"), 2)
        << out;
    EXPECT_NE(out.find("[0] # Out of bounds values : 0 OK"), std::string::npos) << out;
  }

  static std::string fileOf(const std::string& name) { return std::string(TUTTI_REFERENCE) + "/" + name; }

 private:
  std::string net_;
  std::string slot_place_ = "GPU memory, by nvidia-peermem";  // what the kernel registers for any device
  ScratchDirectory log_;
  std::string last_log_;
};

class Reference : public FourRanks {
 protected:
  Reference() : FourRanks("Socket") { std::filesystem::create_directories(TUTTI_REFERENCE); }
  static void keep(const std::string& name, const std::string& text) { std::ofstream(fileOf(name)) << text; }
};

TEST_F(Reference, AllReduce) {
  for (const std::string& memory : memories()) allReduce(memory);
}

TEST_F(Reference, Training) {
  for (const std::string& memory : memories()) keep(memory, hashAfterTraining(memory));
}

TEST_F(Reference, Bits) {
  if (!TUTTI_HAS_GPUS) GTEST_SKIP() << "this build has no CUDA";
  bits("cuda");
  keep("bits", bits("host"));
}

class Ring : public FourRanks {
 protected:
  Ring() : FourRanks("IB") {}

  static void expectKept(const std::string& name, const std::string& got) {
    const std::string want = contentOf(fileOf(name));
    ASSERT_NE(want, "") << "no " << fileOf(name)
                        << ": run ring_test --gtest_filter=Reference.* outside first";
    EXPECT_EQ(got, want);
    std::cout << name << ": RDMA " << got << "\n" << name << ": TCP  " << want << "\n";
  }
};

class RingOn : public Ring, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Memory, RingOn, testing::ValuesIn(memories()),
                         [](const auto& info) { return info.param; });

TEST_P(RingOn, AllReduce) { allReduce(GetParam()); }

TEST_P(RingOn, TrainingEndsWithTheBitsOfTheReference) {
  expectKept(GetParam(), hashAfterTraining(GetParam()));
}

TEST_F(Ring, OfGpusGivesTheBitsOfTheHostsExecutor) {
  if (!TUTTI_HAS_GPUS) GTEST_SKIP() << "this build has no CUDA";
  expectKept("bits", bits("cuda"));
}

TEST_F(Ring, OfGpusGivesTheSameBitsWhenPortsGoDownMeanwhile) {
  if (!TUTTI_HAS_GPUS) GTEST_SKIP() << "this build has no CUDA";
  // As soon as a rank says how a link between hosts goes: both ports, one after the other. That may come when
  // nothing is on its way any more: then once again.
  int broken = 0;
  for (int attempt = 0; attempt < 5 && broken == 0; ++attempt) {
    std::atomic<bool> is_over{false};
    std::thread trouble([&] {
      while (!is_over && count(logNow(), "RDMA with rank") == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (const char* link : {"h1r0", "h0r0"}) {
        runCommand({"ip", "link", "set", link, "down"});
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        runCommand({"ip", "link", "set", link, "up"});
      }
    });
    const std::string got = bits("cuda", {{"TUTTI_NET_RECOVERY", "60"}});  // a busy guest takes its time
    is_over = true;
    trouble.join();
    expectKept("bits", got);
    broken = count(log(), R"(RDMA to rank \d .* broke \()");
  }
  EXPECT_GT(broken, 0) << log();
}

TEST_F(Ring, OfGpusGoesThroughHostMemoryWhereItMust) {
  if (!TUTTI_HAS_GPUS) GTEST_SKIP() << "this build has no CUDA";
  expectSlotsIn("pinned host memory: TUTTI_CHECKSUM=1, for which the host reads them");
  allReduce("cuda", {{"TUTTI_CHECKSUM", "1"}});
  // Too small for the slots of links with two ranks, not for what is in it besides.
  expectSlotsIn("pinned host memory: .*cudaMalloc.*out of memory");
  allReduce("cuda", {{"TUTTI_EMULATED_GPU_BYTES", "33554432"}, {"TUTTI_LANES", "4"}});
}

/// One rank on each of so many hosts.
class Switch : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Of, Switch, testing::Values(3, 4), testing::PrintToStringParamName());

TEST_P(Switch, HostsConform) {
  const int hosts = GetParam();
  std::map<int, Environment> devices;
  for (int host = 0; host < hosts; ++host)
    devices[host] = {{"NCCL_IB_HCA", "=h" + std::to_string(host) + "r0"}};
  const Environment by_rdma{{"NCCL_NET", "IB"}, {"NCCL_SOCKET_IFNAME", "lo"}};
  expectSuccess(RankGroup(hosts, {"conform", "26"}, by_rdma, devices, hosts).wait());
}

}  // namespace
}  // namespace tutti::test
