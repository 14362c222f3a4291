// Programs that cannot run on emulated GPUs are told so by name, before they run where their file shows it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

CommandResult run(const std::string& program) {
  return runCommand({"tutti-run", "--emulate-gpus", "2", "-n", "1", program});
}

std::string here(const std::string& name) { return TUTTI_NCCL_PROGRAMS "/" + name; }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(EmulationRefusals, WhatAProgramsFileShows) {
  const std::pair<const char*, const char*> cases[] = {
      {"not_served_static", "nvcc -cudart shared"},
      {"needs_driver", "libcuda.so.1, and CUDA's driver API is not emulated"},
      {"needs_old_runtime", "libcudart.so.12"},
      {"needs_rpath", "stubs/rpath/libcudart.so.13 before the emulated one"},
  };
  for (const auto& [program, words] : cases) {
    const auto result = run(here(program));
    EXPECT_EQ(result.exit_code, 126) << program << result.out << result.err;
    EXPECT_TRUE(contains(result.err, words)) << program << ": " << result.err;
    EXPECT_EQ(result.out, "") << program << " was started";
  }
}

TEST(EmulationRefusals, WhatWillFailIsToldAndTheProgramRuns) {
  const auto with_cublas = run(here("needs_cublas"));
  EXPECT_EQ(with_cublas.exit_code, 0) << with_cublas.err;
  EXPECT_EQ(with_cublas.out, "[0] started\n");
  EXPECT_TRUE(contains(with_cublas.err, "libcublas.so.13, whose kernels are machine code"))
      << with_cublas.err;

  // Its own libnccl.so.2 has the function; Tutti's, which is loaded, has not.
  const auto with_nccl = run(here("needs_other_nccl"));
  EXPECT_NE(with_nccl.exit_code, 0) << with_nccl.out;
  EXPECT_TRUE(
      contains(with_nccl.err, "it calls ncclOfAnotherVersion, which this version of Tutti does not have"))
      << with_nccl.err;
}

TEST(EmulationRefusals, FunctionsAndInstructionsByName) {
  const auto result = run(here("not_served_shared"));
  EXPECT_EQ(
      result.out,
      "[0] array: cudaErrorNotSupported\n[0] kept: cudaErrorNotSupported\n[0] launch: cudaErrorInvalidPtx\n")
      << result.err;
  EXPECT_TRUE(contains(result.err, "cudaMallocArray is not emulated")) << result.err;
  for (const auto* const part : {"the __managed__ variable managed_word is not emulated", "onTensorCores",
                                 "PTX line ", "wmma.load", "this instruction is not known"}) {
    EXPECT_TRUE(contains(result.err, part)) << part << " is missing in: " << result.err;
  }
}

TEST(EmulationRefusals, ScriptsAndDamagedFilesAreLetPass) {
  const ScratchDirectory directory;
  const auto script = run(directory.addProgram("script", "#!/bin/sh\necho ran\n"));
  EXPECT_EQ(script.out, "[0] ran\n") << script.err;
  // An ELF file that ends after its header.
  std::string header("\177ELF\2\1\1", 7);
  header.resize(64, '\1');
  const auto damaged = run(directory.addProgram("damaged", header));
  EXPECT_TRUE(contains(damaged.err, "cannot execute")) << damaged.err;
}

}  // namespace
}  // namespace tutti::test
