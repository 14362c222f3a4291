// Calls of CUDA that fail under communicators on emulated GPUs, at every point of the making of a
// communicator, of its first use, and of its end: the rank says which and why, the other rank says whose, and
// nothing stays.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/rank_group.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;

/// Of gpu_fault_program: see there. What stays allocated makes it fail, too.
CommandResult run(const std::vector<std::string>& arguments, Environment more = {}) {
  more["LD_LIBRARY_PATH"] = TUTTI_EMULATOR_DIR;
  more["TUTTI_EMULATED_GPUS"] = "2";
  more["TUTTI_EMULATOR_CHECK_LEAKS"] = "1";
  more["TUTTI_DEVICE"] = "cuda";
  more["TUTTI_LANES"] = "1";
  more["TUTTI_SLOT_BYTES"] = "4096";
  more["TUTTI_LEND_BYTES"] = "1000";
  more.try_emplace("TUTTI_INIT_TIMEOUT", "20");
  std::vector<std::string> command{"gpu_fault_program"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return Command(command, more).wait(seconds(280));
}

void expectSuccess(const CommandResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

class GpuFaults : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ranks, GpuFaults, testing::Values("threads", "processes"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(GpuFaults, EveryCallInTurn) {
  expectSuccess(run({GetParam(), "each", "cudaErrorMemoryAllocation", "5", "1"}));
}

TEST_P(GpuFaults, EveryCallInTurnWithOtherErrorsFull) {
  for (const char* error : {"cudaErrorNotSupported", "cudaErrorUnknown", "cudaErrorLaunchFailure"}) {
    SCOPED_TRACE(error);
    expectSuccess(run({GetParam(), "each", error, "5", "1"}));
  }
}

void breakAt(const std::string& ranks, int call) {
  SCOPED_TRACE(call);
  const std::string faults = "break:device=1,error=cudaErrorIllegalAddress,at=" + std::to_string(call);
  expectSuccess(run({ranks, "once", faults, "cudaErrorIllegalAddress"}));
}

/// The call that learns of it did nothing wrong.
TEST_P(GpuFaults, WhatAKernelLeftIsNotBlamedOnTheCall) {
  const std::string faults = "break:device=1,call=cudaPointerGetAttributes,error=cudaErrorIllegalAddress";
  expectSuccess(run(
      {GetParam(), "once", faults, "(cudaErrorIllegalAddress), left by an earlier kernel, perhaps of the "}));
}

TEST_P(GpuFaults, AGpuThatBreaks) {
  for (int call = 10; call < 100; call += 15) breakAt(GetParam(), call);
}

TEST_P(GpuFaults, AGpuThatBreaksAtEveryCallFull) {
  for (int call = 5; call < 110; ++call) breakAt(GetParam(), call);
}

TEST_P(GpuFaults, WhileAKernelWaits) {
  for (const std::string faults :
       {"break:device=1,error=cudaErrorDevicesUnavailable", "break:device=1,error=cudaErrorLaunchFailure",
        "fail:device=1,call=cudaLaunchKernel,error=cudaErrorLaunchOutOfResources"}) {
    SCOPED_TRACE(faults);
    expectSuccess(run({GetParam(), "running", faults, faults.substr(faults.find("cudaError"))}));
  }
}

TEST_P(GpuFaults, TheEndTellsWhatNoCallHasTold) {
  expectSuccess(run({GetParam(), "silent", "break:device=1", "cudaErrorDevicesUnavailable"}));
}

/// Before it has joined: the others cannot know of it.
TEST_P(GpuFaults, BeforeTheRankHasJoined) {
  for (const char* at : {"2", "4"}) {
    SCOPED_TRACE(at);
    const std::string faults = "fail:device=1,error=cudaErrorDevicesUnavailable,at=" + std::string(at);
    expectSuccess(
        run({GetParam(), "once", faults, "cudaErrorDevicesUnavailable"}, {{"TUTTI_INIT_TIMEOUT", "1"}}));
  }
}

TEST_P(GpuFaults, ASlowGpuGivesTheSameResults) {
  expectSuccess(run({GetParam(), "right", "slow:device=1,ms=20"}));
}

}  // namespace
}  // namespace tutti::test
