// What a rank's kernels wrote to pinned memory, read by the host.
#pragma once

#include "kernels/cuda/cuda_work.h"
#include "runtime/core/accelerator.h"

namespace tutti {

/// Any thread, at any time; calls nothing of CUDA.
GpuReport readReport(const CudaControl& control);
GpuMoved readMoved(const CudaControl& control);

}  // namespace tutti
