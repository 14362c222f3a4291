// What a device says about itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "tools/cuda_emulator/runtime/device.h"

namespace tutti::emulator {

cudaDeviceProp propertiesOf(const Device& device);
/// 0 for what these devices do not have. Throws cudaErrorInvalidValue for what CUDA does not know.
int attributeOf(const Device& device, cudaDeviceAttr attribute);
/// A fixed value. Throws cudaErrorUnsupportedLimit.
std::size_t limitOf(cudaLimit limit);
/// Throws cudaErrorInvalidValue.
Device& deviceByBusId(const std::string& id);

}  // namespace tutti::emulator
