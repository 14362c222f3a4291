// Free memory, before shared memory is taken: a full machine is an error in words, not a killed process.
#pragma once

#include <cstddef>
#include <string_view>

namespace tutti {

/// Bytes that can be allocated now: the smaller of what the system has available and what the control group
/// of this process leaves. Returns SIZE_MAX where neither can be read.
std::size_t freeMemoryBytes();

/// Throws Error(ncclSystemError) that names need and free memory, and the remedy, when `bytes` do not fit.
void requireFreeMemory(
    std::size_t bytes, std::string_view what = "shared memory",
    std::string_view remedy = "Free memory, or lower TUTTI_SLOT_BYTES, TUTTI_SLOTS or TUTTI_LANES.");

}  // namespace tutti
