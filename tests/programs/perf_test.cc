// The *_perf programs, whole runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"
#include "tests/programs/perf_command.h"

namespace tutti::perf {
namespace {

const Arguments kSweep{"-b", "4", "-e", "1M", "-f", "4", "-n", "3", "-c", "1"};

TEST(Programs, AllReduceEveryTypeAndOperation) {
  const Arguments everything{"-b", "4", "-e", "256K", "-f", "16", "-n", "2", "-d", "all", "-o", "all"};
  const CommandResult result = launched(4, "all_reduce_perf", everything);
  expectGood(result, 12 * 6 * 5);
  EXPECT_TRUE(contains(result.out, "#  Rank  3 Group  0 Pid "));
  EXPECT_TRUE(contains(result.out, "\n      262144        131072  bfloat16     avg      -1  "));
  expectGood(launched(3, "all_reduce_perf", everything + Arguments{"-u", "1"}), 12 * 6 * 5);
  expectGood(launched(4, "reduce_scatter_perf", everything + Arguments{"-c", "2"}), 12 * 6 * 5);
}

TEST(Programs, OtherCollectives) {
  expectGood(launched(4, "all_gather_perf", kSweep + Arguments{"-d", "all", "-m", "2"}), 12 * 10);
  expectGood(launched(3, "broadcast_perf", kSweep + Arguments{"-d", "all", "-r", "all"}), 12 * 3 * 10);
  expectGood(launched(2, "all_reduce_perf", {"-b", "0", "-e", "0", "-z", "3", "-a", "3"}), 1);
}

TEST(Programs, StartTheirOwnRanks) {
  const CommandResult processes = alone("all_reduce_perf", Arguments{"--launch", "3"} + kSweep);
  expectGood(processes, 10);
  EXPECT_TRUE(contains(processes.out, "#  Rank  2 Group  0 Pid "));
  const CommandResult threads = alone("all_reduce_perf", kSweep + Arguments{"-t", "4"});
  expectGood(threads, 10);
  EXPECT_TRUE(contains(threads.out, "#  Rank  3 Group  0 Pid "));
  const CommandResult one_thread =
      alone("reduce_perf", kSweep + Arguments{"-g", "3", "-m", "2", "-r", "all"});
  expectGood(one_thread, 30);
  EXPECT_TRUE(contains(one_thread.out, "#  Rank  2 Group  0 Pid "));
  expectGood(launched(2, "all_reduce_perf", kSweep + Arguments{"-t", "2", "-g", "2", "-R", "1"}), 10);
  const CommandResult both = launched(2, "all_gather_perf", kSweep + Arguments{"-t", "2"});
  expectGood(both, 10);
  EXPECT_TRUE(contains(both.out, "#  Rank  3 Group  0 Pid "));
  const CommandResult one = alone("all_reduce_perf", kSweep);
  expectGood(one, 10);
  EXPECT_TRUE(contains(one.out, "ONE RANK ONLY"));
  EXPECT_TRUE(contains(one.out, "--launch 4"));
  EXPECT_TRUE(contains(one.out, "\n# Avg bus bandwidth    : 0\n#\n"));
  EXPECT_EQ(launched(2, "all_reduce_perf", {"--launch", "2"}).exit_code, 2);
}

TEST(Programs, WithoutCheckSayNotAvailable) {
  const CommandResult result = launched(2, "all_reduce_perf", {"-b", "8", "-e", "8", "-c", "0"});
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_EQ(rowsOf(result.out).size(), 1U) << result.out;
  EXPECT_EQ(rowsOf(result.out)[0][8], "N/A");
  EXPECT_EQ(rowsOf(result.out)[0][12], "N/A");
}

TEST(Programs, CorruptionIsFoundAndFails) {
  for (const char* program :
       {"all_reduce_perf", "reduce_scatter_perf", "all_gather_perf", "broadcast_perf"}) {
    const CommandResult result = launched(4, program, {"-b", "4K", "-e", "4K", "--corrupt", "2:17"});
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_TRUE(matches(result.err,
                        "rank 2: size 4096 float .*out-of-place: first wrong element: "
                        "index 17, expected .*, got .* \\(1 wrong in all\\)\n"));
    EXPECT_TRUE(contains(result.out, "# Out of bounds values : 2 FAILED\n"));
  }
}

TEST(Programs, BandwidthBelowTheLimitFails) {
  const Arguments arguments{"-b", "1K", "-e", "1K"};
  const CommandResult slow = launched(2, "all_reduce_perf", arguments, {{"NCCL_TESTS_MIN_BW", "1e9"}});
  EXPECT_EQ(slow.exit_code, 1);
  EXPECT_TRUE(matches(slow.out, "# Avg bus bandwidth    : [0-9.e-]+ FAILED\n#\n"));
  EXPECT_EQ(launched(2, "all_reduce_perf", arguments, {{"NCCL_TESTS_MIN_BW", "0"}}).exit_code, 0);
}

TEST(Programs, JsonHoldsTheTable) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("perf_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "results.json";
  const Arguments arguments{"-b", "8", "-e", "64", "-f", "2", "-n", "5", "-I", "1", "-K", "2", "-J", path};
  EXPECT_EQ(launched(2, "all_reduce_perf", arguments).exit_code, 0);
  EXPECT_EQ(launched(2, "all_reduce_perf", arguments + Arguments{"--corrupt", "0:0"}).exit_code, 1);
  const auto good = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(good["version"], 3);
  EXPECT_EQ(good["config"]["devices"].size(), 2U);
  ASSERT_EQ(good["results"].size(), 4U);
  const auto& last = good["results"][3];
  EXPECT_EQ(last["size"], 64);
  EXPECT_EQ(last["count"], 16);
  EXPECT_EQ(last["redop"], "sum");
  EXPECT_EQ(last["out_of_place"]["nwrong"], 0);
  const double time_us = last["in_place"]["time"];
  EXPECT_NEAR(last["in_place"]["bus_bw"], 64 / time_us / 1e3, 1e-9);
  EXPECT_EQ(last["in_place_per_iter"]["times_us"].size(), 3U);
  EXPECT_EQ(good["out_of_bounds"]["okay"], "true");
  const auto bad = nlohmann::json::parse(std::ifstream(path + ".0"));
  EXPECT_EQ(bad["out_of_bounds"]["okay"], "false");
  EXPECT_EQ(bad["out_of_bounds"]["count"], 8);
  std::filesystem::remove_all(folder);
}

TEST(Programs, BadArgumentsExitWithTwo) {
  const std::vector<std::pair<Arguments, std::string>> bad{
      {{"-b", "8M", "-e", "4M"}, "smallest size (-b)"},
      {{"-b", "-5"}, "negative"},
      {{"-b", "4", "-e", "8", "-i", "0"}, "step between sizes (-i) is 0"},
      {{"-e", "12Q"}, "12Q"},
      {{"--frobnicate"}, "--frobnicate"},
      {{"-o", "xor"}, "xor is not a reduction; there are: sum prod max min avg"},
      {{"-d", "float16"}, "float16 is not a data type; there are: int8 uint8 int32"},
      {{"-g", "0"}, "ngpus"},
      {{"-G", "1", "-z", "2"}, "-G: a recorded operation cannot be waited for (-z)"},
      {{"-G", "1", "-y", "1"}, "-G: the NULL stream (-y 1) cannot be recorded"},
      {{"-G", "1", "-I", "1"}, "-G: a replay has no single iterations"},
      {{"--device", "gpu"}, "gpu is not a device; there are: auto host cuda"},
      {{"-y", "7"}, "-y"},
      {{"-x", "3"}, "cta_policy"},
      {{"-D", "-1"}, "device_implementation"},
      {{"-V", "0"}, "device_cta_count"},
      {{"-R", "3"}, "local_register"},
      {{"-f", "-1"}, "stepfactor"},
      {{"-p", "2"}, "parallel_init"},
      {{"-z", "4"}, "blocking"},
      {{"-n", "0"}, "iters"},
      {{"-a", "4"}, "average"},
      {{"-C", "2"}, "-C"},
      {{"-I", "1", "-K", "20"}, "-K"},
      {{"-T", "-1"}, "timeout"},
      {{"-t", "0"}, "nthreads"},
      {{"-r", "x"}, "-r"},
      {{"-r", "1"}, "-r: no rank 1"},
      {{"--corrupt", "1"}, "--corrupt"},
      {{"-J", "/nonexistent/file"}, "/nonexistent/file"}};
  for (const auto& [arguments, words] : bad) {
    const CommandResult result = alone("broadcast_perf", arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << result.out;
    EXPECT_TRUE(contains(result.err, words));
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(alone("broadcast_perf", {"--help"}).exit_code, 0);
}

/// How often `words` are in `text`.
std::size_t countOf(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

TEST(Programs, FlagsWithoutEffectSaySo) {
  const Arguments all{"-p", "1", "-R", "2", "-x", "2", "-D", "3", "-V", "8", "-G", "4"};
  const CommandResult result = alone("broadcast_perf", Arguments{"-b", "8", "-e", "8"} + all);
  expectGood(result, 1);
  for (const char* words :
       {"# -p 1 has no effect: threads always join in parallel\n",
        "# -x 2 has no effect: the library has one policy\n",
        "# -D 3 has no effect: the library has no device API, so its ordinary operation is measured\n",
        "# -V 8 has no effect: the library has no device API",
        "# -G 4 has no effect: there are no CUDA graphs",
        "# -R 2 does as -R 1: the library has no windows of symmetric memory"}) {
    EXPECT_TRUE(contains(result.out, words)) << words;
  }
  EXPECT_TRUE(contains(result.out, "graph: 0"));
  const CommandResult plain = alone("broadcast_perf", {"-b", "8", "-e", "8", "-f", "0", "-r", "-1"});
  expectGood(plain, 1);
  EXPECT_EQ(countOf(plain.out, "effect"), 0U);
}

TEST(Programs, WhatAllThreadsFailWithIsSaidTwiceAtMost) {
  const CommandResult result = alone("all_reduce_perf", {"-t", "1025", "-b", "8", "-e", "8"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(countOf(result.err, "\n"), 2U) << result.err;
  EXPECT_TRUE(matches(result.err, "^all_reduce_perf: rank [0-9]+: .*nranks 1025 is not from 1 to 1024"));
  EXPECT_TRUE(contains(result.err, "all_reduce_perf: 1024 more ranks of this process: "));
}

// With 2 ranks as threads; what the flags do is tested elsewhere.
TEST(Programs, EveryFlagOfNcclTestsIsTakenByEveryProgram) {
  const Arguments flags{"--ngpus",
                        "1",
                        "--minbytes",
                        "64",
                        "--maxbytes",
                        "64",
                        "--stepbytes",
                        "8",
                        "--stepfactor",
                        "2",
                        "--iters",
                        "2",
                        "--agg_iters",
                        "1",
                        "--warmup_iters",
                        "1",
                        "--run_cycles",
                        "1",
                        "--parallel_init",
                        "0",
                        "--check",
                        "1",
                        "--op",
                        "max",
                        "--datatype",
                        "half",
                        "--root",
                        "1",
                        "--cudagraph",
                        "2",
                        "--report_cputime",
                        "1",
                        "--report_timestamps",
                        "1",
                        "--average",
                        "3",
                        "--local_register",
                        "2",
                        "--cta_policy",
                        "1",
                        "--device_implementation",
                        "1",
                        "--device_cta_count",
                        "8",
                        "--memory_report",
                        "1",
                        "--unalign",
                        "1",
                        "--per_iter_timing",
                        "0",
                        "--per_iter_skip",
                        "0",
                        "--blocking",
                        "0",
                        "--stream_null",
                        "0",
                        "--timeout",
                        "60"};
  for (const char* program : {"all_reduce_perf", "all_gather_perf", "broadcast_perf", "reduce_scatter_perf",
                              "reduce_perf", "alltoall_perf", "alltoallv_perf", "scatter_perf", "gather_perf",
                              "sendrecv_perf", "hypercube_perf"}) {
    SCOPED_TRACE(program);
    const CommandResult result = alone(program, flags + Arguments{"-t", "2"});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_TRUE(contains(result.out, "# Out of bounds values : 0 OK"));
    EXPECT_EQ(rowsOf(result.out).size(), 1U) << result.out;
  }
}

TEST(Programs, TheDeviceIsASettingOfTheLibraryToo) {
  const Arguments command{"env", "-u", "TUTTI_DEVICE", binary("all_reduce_perf"), "-b", "8", "-e", "8"};
  const test::ScratchDirectory scratch;
  const CommandResult wrong =
      runCommand(command, {{"NCCL_CONF_FILE", scratch.write("a", "TUTTI_DEVICE=gpu\n")}});
  EXPECT_TRUE(contains(wrong.err, "TUTTI_DEVICE=\"gpu\": expected auto, cuda or host"));
  EXPECT_TRUE(contains(wrong.err, "It comes from " + scratch.path() + "/a line 1"));
  expectGood(runCommand(command, {{"NCCL_CONF_FILE", scratch.write("b", "TUTTI_DEVICE=HOST\n")}}), 1);
}

TEST(Programs, AnOutputThatCannotBeWrittenIsAnError) {
  const test::ScratchDirectory scratch;
  const Arguments arguments{"-b", "8", "-e", "8", "-J"};
  const CommandResult folder = alone("all_reduce_perf", arguments + Arguments{scratch.path()});
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_TRUE(contains(folder.err, "-J: cannot create " + scratch.path() + ": Is a directory"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + ".0"));
  const CommandResult full = alone("all_reduce_perf", arguments + Arguments{"/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_TRUE(contains(full.err, "-J: cannot write /dev/full: No space left on device"));
  const CommandResult shown = alone("all_reduce_perf", arguments + Arguments{"/dev/stdout"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_TRUE(contains(shown.out, "\"average_bus_bandwidth\"")) << shown.out;
  const CommandResult help =
      test::runCommand({"sh", "-c", "exec \"$0\" --help >/dev/full", binary("all_reduce_perf")});
  EXPECT_EQ(help.exit_code, 1);
  EXPECT_TRUE(contains(help.err, "cannot write to standard output"));
}

TEST(Programs, EndlessRunStopsAtASignalWithItsReport) {
  test::Command command({binary("all_reduce_perf"), "-t", "2", "-b", "8", "-e", "8", "-N", "0"});
  ASSERT_TRUE(command.waitForOutput("float     sum", kPatience));
  command.kill(SIGINT);
  const CommandResult result = command.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "# Out of bounds values : 0 OK\n"));
}

TEST(Programs, TimeLimitEndsALongRow) {
  // A row that would take hours.
  const CommandResult result =
      launched(2, "all_reduce_perf", {"-b", "8", "-e", "8", "-n", "2000000000", "-T", "1"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(contains(result.err, "size 8 float sum out-of-place took more than 1 s (-T)"));
}

}  // namespace
}  // namespace tutti::perf
