// The *_perf programs for what came after the four first collectives: reduce, point-to-point, mulsum, groups,
// registration.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/programs/perf_command.h"

namespace tutti::perf {
namespace {

const Arguments kSweep{"-b", "4", "-e", "1M", "-f", "4", "-n", "3"};
const Arguments kOneSize{"-b", "4K", "-e", "4K", "-n", "3"};

/// A flipped bit on rank 2 makes the run fail, and is told as `words`.
void expectCorruptionIsFound(const std::string& program, const Arguments& arguments,
                             const std::string& words) {
  const CommandResult result = launched(4, program, kOneSize + arguments + Arguments{"--corrupt", "2:17"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_TRUE(matches(result.err, "rank 2: size 4096 .*out-of-place: first wrong " + words));
}

TEST(Operations, Reduce) {
  expectGood(launched(4, "reduce_perf", kSweep), 10);
  expectGood(
      launched(3, "reduce_perf", kOneSize + Arguments{"-d", "bfloat16", "-o", "avg", "-r", "all", "-u", "1"}),
      3);
  expectCorruptionIsFound("reduce_perf", {"-r", "2"}, "element: index 17, ");
  // On a rank that is not the root nothing may be written.
  expectCorruptionIsFound("reduce_perf", {"-r", "1"}, "byte: index 71, expected 0xd7, got 0x97");
}

TEST(Operations, SendRecv) {
  for (const int nranks : {1, 2, 3, 4}) expectGoodOutOfPlace(launched(nranks, "sendrecv_perf", kSweep), 10);
  expectGoodOutOfPlace(launched(3, "sendrecv_perf", kOneSize + Arguments{"-d", "all", "-m", "3"}), 12);
  expectCorruptionIsFound("sendrecv_perf", {}, "element: index 17, ");
}

TEST(Operations, AllToAll) {
  for (const int nranks : {1, 2, 3, 4}) expectGoodOutOfPlace(launched(nranks, "alltoall_perf", kSweep), 10);
  expectGoodOutOfPlace(launched(3, "alltoall_perf", kOneSize + Arguments{"-d", "all", "-m", "3"}), 12);
  expectCorruptionIsFound("alltoall_perf", {}, "element: index 17, ");
}

TEST(Operations, MulSum) {
  expectGood(launched(4, "all_reduce_perf", kOneSize + Arguments{"-d", "all", "-o", "mulsum"}), 12);
  expectGood(launched(3, "reduce_scatter_perf", kSweep + Arguments{"-o", "mulsum", "-d", "half"}), 10);
}

TEST(Operations, GroupedIterations) {
  for (const char* program :
       {"all_reduce_perf", "reduce_scatter_perf", "all_gather_perf", "broadcast_perf"}) {
    for (const char* blocking : {"0", "1", "3"}) {
      expectGood(launched(3, program, kOneSize + Arguments{"-m", "4", "-z", blocking}), 1);
    }
  }
}

TEST(Operations, RegisteredBuffers) {
  for (const char* program :
       {"all_reduce_perf", "reduce_scatter_perf", "all_gather_perf", "broadcast_perf"}) {
    for (const int nranks : {2, 3}) {
      const CommandResult result = launched(nranks, program, kSweep + Arguments{"-R", "1"});
      expectGood(result, 10);
      EXPECT_TRUE(contains(result.out, "# Local Registration: "));
    }
  }
  expectGood(alone("all_reduce_perf", kSweep + Arguments{"-R", "1", "-t", "3"}), 10);
  EXPECT_EQ(alone("all_reduce_perf", {"-R", "2"}).exit_code, 2);
}

}  // namespace
}  // namespace tutti::perf
