// Programs written for NCCL, unmodified on emulated GPUs: each compares its results with its own on the CPU,
// and frees all that it allocated.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

/// Runs `program` as `ranks` processes on `gpus` GPUs; each of them must say so in the end.
void succeeds(const std::string& program, int gpus, int ranks, const std::string& argument = "") {
  std::vector<std::string> argv{"tutti-run",           "--emulate-gpus",
                                std::to_string(gpus),  "-n",
                                std::to_string(ranks), std::string(TUTTI_NCCL_PROGRAMS "/") + program};
  if (!argument.empty()) argv.push_back(argument);
  const auto result = runCommand(argv, {{"TUTTI_DEVICE", "auto"}, {"TUTTI_EMULATOR_CHECK_LEAKS", "1"}},
                                 std::chrono::seconds(240));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  int said = 0;
  const std::string words = "] " + program + ": ";
  for (auto at = result.out.find(words); at != std::string::npos; at = result.out.find(words, at + 1)) ++said;
  EXPECT_EQ(said, ranks) << result.out << result.err;
}

/// One process per GPU, which find each other by a file.
void succeedsByFile(const std::string& program, int gpus) {
  const ScratchDirectory directory;
  succeeds(program, gpus, gpus, directory.path() + "/id");
}

/// A port that was free a moment ago.
int freePort() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(fd, generic, sizeof address), 0);
  EXPECT_EQ(::getsockname(fd, generic, &bytes), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

TEST(NcclPrograms, OneProcessWithEightGpus) {
  succeeds("heat_ring", 8, 1);
  succeeds("power_iteration", 8, 1);
  succeeds("tensor_parallel", 8, 1);
  succeeds("device_query", 8, 1);
}

TEST(NcclPrograms, AThreadPerGpu) {
  succeeds("histogram", 8, 1);
  succeeds("scan_threads", 8, 1);
}

TEST(NcclPrograms, OneGpuIsEnough) {
  succeeds("heat_ring", 1, 1);
  succeedsByFile("kmeans", 1);
}

TEST(NcclPrograms, HalfPrecisionAndLossScaling) { succeedsByFile("half_sgd", 4); }
TEST(NcclPrograms, ProcessesWithSeveralGpusEach) {
  const ScratchDirectory directory;
  succeeds("devices_per_process", 6, 2, directory.path() + "/id");
}
TEST(NcclPrograms, RowsAndColumnsBySplit) { succeedsByFile("split_grid", 6); }
TEST(NcclPrograms, KMeansOnEightGpus) { succeedsByFile("kmeans", 8); }
TEST(NcclPrograms, GraphOfATrainingStep) { succeedsByFile("graph_step", 3); }
TEST(NcclPrograms, BucketsOnSeveralStreams) { succeedsByFile("buckets", 3); }
TEST(NcclPrograms, WeightedAverageInBf16) { succeedsByFile("bf16_average", 4); }
TEST(NcclPrograms, ErrorsAreFoundAndEnded) { succeedsByFile("failing_peer", 3); }
TEST(NcclPrograms, SoftmaxWithTheIdOverTcp) { succeeds("softmax", 4, 4, std::to_string(freePort())); }
TEST(NcclPrograms, ExpertsInForkedRanks) { succeeds("experts_fork", 4, 1); }

}  // namespace
}  // namespace tutti::test
