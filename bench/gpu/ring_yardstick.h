// A ring all-reduce as one would write it by hand for one case: float sums of ranks that share a GPU and a
// context. What the generic ring program is measured against; no part of the library.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tutti::gpu_bench {

/// A block's link to its right neighbour, in GPU memory. Each counter has one writer and stands in a line of
/// its own.
struct alignas(128) RingLink {
  std::uint64_t posted;                 ///< slots written, by the sender
  alignas(128) std::uint64_t released;  ///< slots read, by the receiver
};

/// What a rank's kernel needs. Slots of a link: slot_count * slot_vectors, block after block.
struct RingRank {
  RingLink* in;
  RingLink* out;
  float4* slots_in;
  float4* slots_out;
  std::uint32_t slot_count;
  std::uint32_t slot_vectors;  ///< of 16 bytes
  int rank;
  int nranks;  ///< 2 or more
};

/// Vectors of 16 bytes; links are as the launch before left them, so all ranks launch alike.
cudaError_t launchRing(const RingRank& rank, int blocks, const float4* in, float4* out, std::size_t vectors,
                       cudaStream_t stream);

/// Blocks of the kernel that a multiprocessor holds at once.
cudaError_t ringBlocksPerMultiprocessor(int* blocks);

}  // namespace tutti::gpu_bench
