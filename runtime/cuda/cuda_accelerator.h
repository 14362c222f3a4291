// The GPUs of this process, by the CUDA runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/core/accelerator.h"
#include "runtime/cuda/host_pins.h"
#include "runtime/cuda/rank_list.h"
#include "transports/cuda_ipc/allocations.h"
#include "transports/cuda_ipc/opened_memory.h"

namespace tutti {

/// The one Accelerator. Holds what belongs to the process: opened and pinned memory, and that of
/// ncclMemAlloc. Ranks refer to it.
class CudaAccelerator final : public Accelerator {
 public:
  int deviceCount(std::string* reason) const override;
  int currentDevice() const override;
  void setDevice(int device) const override;
  GpuInfo info(int device) const override;
  PointerInfo inspect(const void* address) const override;
  int deviceOf(GpuStream stream) const override;
  void* allocate(std::size_t bytes) override;
  bool free(void* address) override;
  void pin(void* address, std::size_t bytes) override;
  void unpin(void* address) noexcept override;
  std::shared_ptr<GpuBlock> makeBlock(std::size_t bytes) override;
  std::unique_ptr<GpuRank> makeRank(const GpuRankOptions& options) override;
  Activity activity() override;

 private:
  OpenedMemory opened_;
  Allocations allocations_;
  HostPins pins_;
  RankList ranks_;
};

}  // namespace tutti
