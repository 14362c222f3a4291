// The emulated CUDA runtime as whole programs see it, started by tutti-run.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

constexpr const char* kProgram = TUTTI_TEST_DIR "/runtime_program";

struct Run {
  std::vector<std::string> options = {"-n", "1", "--emulate-gpus", "2"};
  std::string program = kProgram;
  std::vector<std::string> arguments = {};
  std::map<std::string, std::string> environment = {};
};

CommandResult run(const Run& run) {
  std::vector<std::string> argv = {"tutti-run"};
  argv.insert(argv.end(), run.options.begin(), run.options.end());
  argv.push_back(run.program);
  argv.insert(argv.end(), run.arguments.begin(), run.arguments.end());
  return runCommand(argv, run.environment);
}

void expectSuccess(const Run& options) {
  const auto result = run(options);
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(EmulatedRuntime, ProcessesShareMemory) {
  const ScratchDirectory directory;
  expectSuccess(
      {.options = {"-n", "2", "--emulate-gpus", "2"}, .arguments = {"share-memory", directory.path()}});
}

TEST(EmulatedRuntime, DevicesOfPretendedHostsDiffer) {
  const auto result =
      run({.options = {"-n", "2", "--hosts", "2", "--emulate-gpus", "1"}, .arguments = {"uuid"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto first = result.out.find("] ");
  const auto second = result.out.find("] ", first + 1);
  EXPECT_NE(result.out.substr(first, 34), result.out.substr(second, 34)) << result.out;
}

TEST(EmulatedRuntime, WhatTheEnvironmentTakesAway) {
  expectSuccess(
      {.arguments = {"no-ipc"},
       .environment = {{"TUTTI_EMULATED_FAULTS", "fail:call=cudaIpc*,error=cudaErrorNotSupported"}}});
  expectSuccess({.arguments = {"no-peers"}, .environment = {{"TUTTI_EMULATED_PEER_ACCESS", "0"}}});
  expectSuccess({.arguments = {"small-device"}, .environment = {{"TUTTI_EMULATED_GPU_BYTES", "1048576"}}});
  expectSuccess({.options = {"-n", "1", "--emulate-gpus", "0"}, .arguments = {"no-device"}});
  expectSuccess({.arguments = {"no-device"}, .environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
}

TEST(EmulatedRuntime, FaultsThatAreNotUnderstoodEndTheProgram) {
  const auto result =
      run({.arguments = {"run-kernel"}, .environment = {{"TUTTI_EMULATED_FAULTS", "fail:call=malloc"}}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "\"fail:call=malloc\": expected call=cudaFUNCTION")) << result.err;
}

TEST(EmulatedRuntime, WrongValuesEndTheProgram) {
  const std::pair<const char*, const char*> wrong[] = {
      {"TUTTI_EMULATED_GPU_BYTES", "8g"},    {"TUTTI_EMULATED_GPU_BYTES", "-1"},
      {"TUTTI_EMULATED_PEER_ACCESS", "no"},  {"TUTTI_EMULATED_HOST_NODES", "2"},
      {"TUTTI_EMULATED_MEMCHECK", "true"},   {"TUTTI_EMULATED_MEMCHECK", "01"},
      {"TUTTI_EMULATOR_CHECK_LEAKS", "yes"},
  };
  for (const auto& [name, value] : wrong) {
    const auto result = run({.arguments = {"no-leak"}, .environment = {{name, value}}});
    EXPECT_EQ(result.exit_code, 2) << name << "=" << value;
    const std::string told = std::string(name) + "=\"" + value + "\": expected ";
    EXPECT_TRUE(contains(result.err, told)) << told << " is missing in: " << result.err;
  }
  expectSuccess({.arguments = {"no-leak"}, .environment = {{"TUTTI_EMULATED_MEMCHECK", ""}}});
}

TEST(EmulatedRuntime, UnknownVariablesAreTold) {
  const auto result = run({.arguments = {"no-leak"}, .environment = {{"TUTTI_EMULATED_MEMCHEK", "1"}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "TUTTI_EMULATED_MEMCHEK is no variable of the emulator")) << result.err;
  EXPECT_TRUE(contains(result.err, "TUTTI_EMULATED_MEMCHECK,")) << result.err;
  const auto usual = run({.arguments = {"no-leak"}, .environment = {{"TUTTI_EMULATED_MEMCHECK", "0"}}});
  EXPECT_EQ(usual.err, "");
}

TEST(EmulatedRuntime, LeaksAreTold) {
  const auto leaky = run({.arguments = {"leak"}, .environment = {{"TUTTI_EMULATOR_CHECK_LEAKS", "1"}}});
  EXPECT_EQ(leaky.exit_code, 99);
  for (const auto* const leak : {"1 of cudaMalloc (100 bytes)", "1 of cudaHostAlloc (200 bytes)",
                                 "1 of cudaStreamCreate", "1 of cudaEventCreate", "1 of cudaGraphCreate"}) {
    EXPECT_TRUE(contains(leaky.err, leak)) << leak << " is missing in: " << leaky.err;
  }
  expectSuccess({.arguments = {"no-leak"}, .environment = {{"TUTTI_EMULATOR_CHECK_LEAKS", "1"}}});
  expectSuccess({.arguments = {"leak"}});
}

TEST(EmulatedRuntime, AFailedKernelSpoilsItsDevice) {
  const auto result = run({.arguments = {"fail-for-good"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "device 0 failed")) << result.err;
  EXPECT_TRUE(contains(result.err, "::readMisaligned(char const*, int4*), block")) << result.err;
}

TEST(EmulatedRuntime, ProcessesEndWhateverStillRuns) { expectSuccess({.arguments = {"kernel-left"}}); }

TEST(EmulatedRuntime, AResetForgetsAll) {
  expectSuccess({.arguments = {"reset"}, .environment = {{"TUTTI_EMULATOR_CHECK_LEAKS", "1"}}});
}

TEST(EmulatedRuntime, EveryFormOfPtx) {
  for (const auto* const program :
       {TUTTI_TEST_DIR "/runtime_program_compressed", TUTTI_TEST_DIR "/runtime_program_plain",
        TUTTI_TEST_DIR "/runtime_program_several"}) {
    const auto result = run({.program = program, .arguments = {"run-kernel"}});
    EXPECT_EQ(result.out, "[0] cudaSuccess, 5\n") << program << ": " << result.err;
  }
}

TEST(EmulatedRuntime, MachineCodeAloneIsRefused) {
  const auto result =
      run({.program = TUTTI_TEST_DIR "/runtime_program_machine_code", .arguments = {"run-kernel"}});
  EXPECT_EQ(result.out, "[0] cudaErrorNoKernelImageForDevice, 0\n") << result.err;
  EXPECT_TRUE(contains(result.err, "storeWord")) << result.err;
  EXPECT_TRUE(contains(result.err, "machine code for architecture 90")) << result.err;
}

TEST(EmulatedRuntime, TuttiRunChecksItsOption) {
  for (const auto* const gpus : {"-1", "65", "two", ""}) {
    const auto result = run({.options = {"-n", "1", "--emulate-gpus", gpus}, .program = "true"});
    EXPECT_EQ(result.exit_code, 2) << gpus;
    EXPECT_TRUE(contains(result.err, "from 0 to 64")) << result.err;
  }
}

}  // namespace
}  // namespace tutti::test
