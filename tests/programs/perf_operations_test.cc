// The *_perf programs for what came after the four first collectives: reduce, point-to-point, mulsum, groups,
// registration.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
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
  for (const int nranks : {1, 2, 3, 4}) expectGood(launched(nranks, "alltoall_perf", kSweep), 10);
  expectGood(launched(3, "alltoall_perf", kOneSize + Arguments{"-d", "all", "-m", "3"}), 12);
  expectCorruptionIsFound("alltoall_perf", {}, "element: index 17, ");
}

TEST(Operations, GatherAndScatter) {
  for (const char* program : {"gather_perf", "scatter_perf"}) {
    SCOPED_TRACE(program);
    expectGood(launched(4, program, kSweep + Arguments{"-r", "3"}), 10);
    expectGood(launched(3, program, kOneSize + Arguments{"-d", "half", "-r", "all", "-u", "1"}), 3);
    expectGood(launched(1, program, kOneSize), 1);
  }
  expectCorruptionIsFound("gather_perf", {"-r", "2"}, "element: index 17, ");
  expectCorruptionIsFound("gather_perf", {"-r", "1"}, "byte: index 71, expected 0xd7, got 0x97");
  expectCorruptionIsFound("scatter_perf", {"-r", "1"}, "element: index 17, ");
}

TEST(Operations, AllToAllOfUnevenBlocks) {
  for (const int nranks : {1, 2, 4}) expectGoodOutOfPlace(launched(nranks, "alltoallv_perf", kSweep), 10);
  expectGoodOutOfPlace(launched(3, "alltoallv_perf", kOneSize + Arguments{"-d", "all", "-m", "3"}), 12);
  EXPECT_EQ(launched(4, "alltoallv_perf", kOneSize + Arguments{"--corrupt", "2:17"}).exit_code, 1);
  const test::ScratchDirectory folder;
  const std::string path = folder.write("traffic", "0 1024 2048\n512 0 512\n4096 0 0\n");
  const std::map<std::string, std::string> matrix{{"NCCL_TESTS_ALLTOALLV_MATRIX_FILE", path},
                                                  {"NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY", "1"}};
  const CommandResult uneven = launched(3, "alltoallv_perf", {"-b", "8K", "-e", "8K", "-n", "3"}, matrix);
  expectGoodOutOfPlace(uneven, 1);
  ASSERT_EQ(rowsOf(uneven.out).size(), 1U);
  EXPECT_EQ(rowsOf(uneven.out)[0][0], "4608");  // what rank 0 receives
  EXPECT_TRUE(matches(uneven.out, "#   rank=1 send_bytes=1024 recv_bytes=1024 alg_bw="));
  const auto refused = [&](int nranks, const Arguments& arguments, const std::string& words) {
    const CommandResult result = launched(nranks, "alltoallv_perf", arguments, matrix);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_TRUE(contains(result.err, words));
  };
  refused(4, {"-b", "8K", "-e", "8K"}, "a matrix of 3 rows for 4 ranks");
  refused(3, {"-b", "4K", "-e", "8K"}, "-b, -e: must be equal");
  refused(3, {"-b", "4K", "-e", "4K"}, "a rank sends or receives 4608 by the matrix");
  EXPECT_EQ(launched(2, "alltoallv_perf", kOneSize, {{"NCCL_TESTS_ALLTOALLV_SPREAD", "2"}}).exit_code, 2);
}

TEST(Operations, Hypercube) {
  for (const int nranks : {1, 2, 4, 8}) expectGood(launched(nranks, "hypercube_perf", kSweep), 10);
  expectGood(alone("hypercube_perf", kOneSize + Arguments{"-t", "4", "-d", "all"}), 12);
  expectCorruptionIsFound("hypercube_perf", {}, "element: index 17, ");
  EXPECT_TRUE(contains(launched(3, "hypercube_perf", kOneSize).err, "2, 4, 8, ... ranks, not 3"));
  EXPECT_TRUE(
      contains(launched(2, "hypercube_perf", kOneSize + Arguments{"-m", "2"}).out, "# -m 2 has no effect"));
}

TEST(Operations, InGroups) {
  const auto run = [](int nranks, const char* program, const Arguments& arguments, const char* split) {
    return launched(nranks, program, arguments, {{"NCCL_TESTS_SPLIT", split}});
  };
  const CommandResult pairs = run(4, "all_reduce_perf", kSweep, "MOD 2");
  expectGood(pairs, 10);
  EXPECT_TRUE(matches(pairs.out, "#  Rank  2 Group  0 Pid .*\n#  Rank  3 Group  1 Pid "));
  // Of two ranks: the bus bandwidth of an all-reduce is its algorithm bandwidth.
  for (const Arguments& row : rowsOf(pairs.out)) EXPECT_EQ(row[6], row[7]);
  expectGood(run(4, "broadcast_perf", kOneSize + Arguments{"-r", "all"}, "DIV 2"), 2);
  expectGood(run(2, "alltoall_perf", kOneSize + Arguments{"-t", "2", "-z", "1"}, "DIV 1"), 1);
  expectGood(run(2, "all_gather_perf", kOneSize + Arguments{"-g", "2"}, "%2"), 1);
  // A wrong value of either group counts.
  const CommandResult wrong = run(4, "all_reduce_perf", kOneSize + Arguments{"--corrupt", "1:3"}, "MOD 2");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(rowsOf(wrong.out)[0][8], "2");
  EXPECT_EQ(run(3, "all_reduce_perf", kOneSize, "MOD 2").exit_code, 2);
  EXPECT_TRUE(
      contains(run(2, "all_reduce_perf", kOneSize, "TWO").err, "NCCL_TESTS_SPLIT: \"TWO\" is none of"));
  EXPECT_TRUE(contains(run(4, "broadcast_perf", kOneSize + Arguments{"-r", "2"}, "MOD 2").err, "no rank 2"));
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
}

}  // namespace
}  // namespace tutti::perf
