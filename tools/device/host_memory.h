// How much host memory there is to get.
#pragma once

#include <cstdint>

namespace tutti::device {

/// Memory that this process could still get: MemAvailable, or what its control group leaves, if less.
std::uint64_t freeHostBytes();

}  // namespace tutti::device
