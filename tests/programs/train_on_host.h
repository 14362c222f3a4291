// tutti-train's kernels on host memory, without ranks.
#pragma once

#include <memory>

#include "tools/device/device.h"
#include "tools/train/kernels.h"

namespace tutti::train {

template <class T>
struct OnHost {
  std::unique_ptr<device::Device> device = device::hostDevices().open(0);
  std::unique_ptr<Kernels<T>> kernels = makeHostKernels<T>(*device);
};

}  // namespace tutti::train
