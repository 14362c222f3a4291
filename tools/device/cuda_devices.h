// The entry of libtutti_programs_cuda.so.
#pragma once

#include <string>

#include "tools/device/device.h"

namespace tutti::device {

/// The GPUs of this process; nullptr, with *why in the driver's words, where there is none that can be used.
using CudaDevicesEntry = Devices* (*)(int version, std::string* why);
inline constexpr const char* kCudaDevicesEntry = "tuttiCudaDevices";

}  // namespace tutti::device
