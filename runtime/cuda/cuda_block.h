// GPU memory for network devices, by the CUDA runtime.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/core/accelerator.h"
#include "transports/cuda_ipc/cuda_call.h"

namespace tutti {

class CudaBlock final : public GpuBlock {
 public:
  /// On the current device. Throws Error.
  explicit CudaBlock(std::size_t bytes);
  CudaBlock(const CudaBlock&) = delete;
  CudaBlock& operator=(const CudaBlock&) = delete;
  ~CudaBlock() override;

  std::span<std::byte> bytes() const override { return {memory_.get(), bytes_}; }
  UniqueFd dmaBuf(std::string* why_not) const override;

 private:
  int device_ = -1;
  std::size_t bytes_;
  OwnedDeviceMemory<std::byte> memory_;
};

}  // namespace tutti
