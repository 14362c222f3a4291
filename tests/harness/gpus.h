// Where tests get GPUs from: they are emulated, as many as a test wants; or, with TUTTI_TEST_GPUS=N, they are
// the N that the machine has, and ranks share them where a test wants more.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace tutti::test {

/// GPUs of the machine that tests are to use; 0: emulated ones.
inline int machineGpus() {
  const char* text = std::getenv("TUTTI_TEST_GPUS");
  return text == nullptr ? 0 : std::atoi(text);
}

/// Whether `wanted` GPUs can be had, for tests in which ranks cannot share them.
inline bool hasGpus(int wanted) { return machineGpus() == 0 || machineGpus() >= wanted; }

/// Why a test is skipped, for GTEST_SKIP().
inline constexpr const char* kInjected = "needs faults that only the emulator injects; ctest runs it";
inline constexpr const char* kTooFew = "needs more GPUs than there are: its ranks cannot share one";

/// CUDA_VISIBLE_DEVICES for `wanted` of the machine's GPUs, or fewer: of those that the caller sees, the
/// first.
inline std::string visibleGpus(int wanted) {
  const char* given = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string all = given == nullptr ? "" : given;
  for (int gpu = 0; given == nullptr && gpu < machineGpus(); ++gpu) all += std::to_string(gpu) + ",";
  std::size_t end = 0;
  for (int gpu = 0; gpu < wanted && end < all.size(); ++gpu)
    end = std::min(all.find(',', end + 1), all.size());
  return all.substr(0, end);
}

/// What a program's environment needs for `wanted` GPUs.
inline std::map<std::string, std::string> environmentOfGpus(int wanted, const std::string& emulator) {
  if (machineGpus() != 0) return {{"CUDA_VISIBLE_DEVICES", visibleGpus(wanted)}};
  return {{"LD_LIBRARY_PATH", emulator}, {"TUTTI_EMULATED_GPUS", std::to_string(wanted)}};
}

/// The same by way of tutti-run: its first arguments, and the environment.
struct GpuLaunch {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};
inline GpuLaunch launchOnGpus(int wanted) {
  if (machineGpus() != 0) return {{"tutti-run"}, environmentOfGpus(wanted, "")};
  return {{"tutti-run", "--emulate-gpus", std::to_string(wanted)}, {}};
}

}  // namespace tutti::test
