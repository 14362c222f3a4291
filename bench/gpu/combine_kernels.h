// combine of the kernels, alone: the product's loops over float sums, without links, in a kernel of their
// own.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tutti::gpu_bench {

/// One source is copied, two are added; the result goes to every destination.
struct CombineCase {
  const char* name;
  std::uint32_t sources;       ///< 1 or 2
  std::uint32_t destinations;  ///< 1 or 2
};
inline constexpr CombineCase kCombineCases[] = {{"1->1", 1, 1}, {"2->1", 2, 1}, {"2->2", 2, 2}};

struct CombineOperands {
  const std::byte* from[2];
  std::byte* to[2];
};

/// Every block has a part of the operands and does it in pieces of `piece_bytes`, as a program does by slots.
/// `bytes`: of one operand.
cudaError_t launchCombine(const CombineCase& shape, const CombineOperands& operands, std::uint64_t bytes,
                          std::uint64_t piece_bytes, int blocks, cudaStream_t stream);

/// Blocks of the library's float kernel that a multiprocessor holds at once, with as many threads as it ever
/// has.
cudaError_t collectiveBlocksPerMultiprocessor(int* blocks);

}  // namespace tutti::gpu_bench
