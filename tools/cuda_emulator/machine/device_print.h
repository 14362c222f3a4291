// printf of device code.
#pragma once

namespace tutti::emulator {

/// `arguments`: packed as CUDA packs them, each at its own alignment, floats as double. Writes to stdout at
/// once; returns the number of arguments, as CUDA's vprintf does.
unsigned devicePrint(const char* format, const unsigned char* arguments);

}  // namespace tutti::emulator
