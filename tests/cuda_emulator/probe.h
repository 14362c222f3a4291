// Runs the kernels of tests/cuda_emulator/probes, as nvcc compiled them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tools/cuda_emulator/machine/module.h"

namespace tutti::emulator {

/// The PTX of probes/NAME.cu for compute_ARCHITECTURE.
std::string probePtx(const std::string& name, int architecture);
std::shared_ptr<Module> loadProbe(const std::string& name, int architecture);

/// Packs the arguments as a launch does and runs the kernel.
template <class... Arguments>
void runKernel(const Module& module, const std::string& name, const LaunchShape& shape,
               Arguments... arguments) {
  const Kernel* kernel = module.kernel(name);
  ASSERT_NE(kernel, nullptr) << name;
  ASSERT_EQ(kernel->parameters().size(), sizeof...(arguments)) << name;
  std::vector<std::byte> packed(kernel->argumentBytes());
  [[maybe_unused]] std::size_t i = 0;
  [[maybe_unused]] const auto pack = [&]<class Argument>(const Argument& argument) {
    constexpr std::size_t kArgumentBytes =
        sizeof(Argument);  // NOLINT(bugprone-sizeof-expression): pointers, too
    ASSERT_EQ(kernel->parameters()[i].bytes, kArgumentBytes) << name;
    std::memcpy(packed.data() + kernel->parameters()[i++].offset, &argument, kArgumentBytes);
  };
  (pack(arguments), ...);
  kernel->run(shape, packed.data());
}

inline LaunchShape shape(std::uint32_t blocks, std::uint32_t threads, std::size_t shared_bytes = 0) {
  return {{blocks, 1, 1}, {threads, 1, 1}, shared_bytes};
}

/// Each test of a probe runs for both architectures.
class ProbeTest : public ::testing::TestWithParam<int> {};

}  // namespace tutti::emulator
