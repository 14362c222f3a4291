// The memory map, as checked kernels ask about it.
#pragma once

namespace tutti::emulator {

/// Where memory is checked: has kernels ask the memory map. Any number of times.
void checkAgainstMemoryMap();

}  // namespace tutti::emulator
