// cudaMemcpy and cudaMemset in all their forms.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "tools/cuda_emulator/runtime/operation.h"

namespace tutti::emulator {

struct CopyRequest {
  void* target = nullptr;
  const void* source = nullptr;
  std::size_t target_pitch = 0;
  std::size_t source_pitch = 0;
  Rows rows;
  cudaMemcpyKind kind = cudaMemcpyDefault;
};

CopyRequest plainCopy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind);

/// In the stream's order. Like CUDA, it has read pageable memory, and has written it, when it returns. Throws
/// cudaErrorInvalidValue where a side is not of the kind that was said, or does not lie in one allocation.
void copyAsync(const CopyRequest& request, cudaStream_t stream);
/// In the legacy stream. Returns when the copy is done, at once where it is from device to device.
void copyNow(const CopyRequest& request);
/// The same, after what was queued on both devices before, and before what is queued later.
void copyBetween(const CopyRequest& request, Device& target, Device& source);

void fillAsync(void* target, std::size_t pitch, int value, Rows rows, cudaStream_t stream);
/// In the legacy stream; not waited for.
void fillNow(void* target, std::size_t pitch, int value, Rows rows);

/// The same as nodes of a graph.
Operation copyNode(const CopyRequest& request);
/// `value` in units of 1, 2 or 4 bytes.
Operation fillNode(void* target, std::size_t pitch, unsigned value, std::size_t unit_bytes, Rows rows);

}  // namespace tutti::emulator
