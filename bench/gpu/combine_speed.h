// combine against cudaMemcpyAsync, in bytes moved: read and written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::gpu_bench {

struct CombineOptions {
  std::vector<std::size_t> bytes;  ///< of one operand
  std::vector<int> blocks;
  std::uint64_t piece_bytes = 512 << 10;
  int rounds = 7;
  double sample_us = 5000;
};

/// Prints a line for each size and contender; throws if a result is wrong. On the current GPU.
void measureCombine(const CombineOptions& options);

}  // namespace tutti::gpu_bench
