#include "runtime/cuda/cuda_block.h"

#include "transports/cuda_ipc/driver.h"

namespace tutti {
namespace {

// What the driver hands to other drivers in one piece, and a multiple of every host's pages: nothing else
// lies in what devices reach.
constexpr std::size_t kGranularity = std::size_t{2} << 20;

}  // namespace

CudaBlock::CudaBlock(std::size_t bytes) : bytes_((bytes + kGranularity - 1) / kGranularity * kGranularity) {
  checkCuda(cudaGetDevice(&device_), "cudaGetDevice");
  const RelaxedCapture relaxed;
  memory_ = allocateDevice(bytes_, "slots of links between hosts");
}

CudaBlock::~CudaBlock() {
  const CurrentDevice current(device_, std::nothrow);
  const RelaxedCapture relaxed;
  memory_.reset();
}

UniqueFd CudaBlock::dmaBuf(std::string* why_not) const {
  const CurrentDevice current(device_);
  return exportDmaBuf(device_, memory_.get(), bytes_, why_not);
}

}  // namespace tutti
