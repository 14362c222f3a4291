// PTX -> C++. Deterministic: the text alone decides what comes out.
#pragma once

#include <string>
#include <vector>

#include "tools/cuda_emulator/ptx/layout.h"
#include "tools/cuda_emulator/ptx/syntax.h"

namespace tutti::emulator::ptx {

/// Raise when the same PTX is to become other C++: part of the cache's key.
constexpr int kTranslatorVersion = 1;

/// One C++ text per translation unit, without the device headers; each entry is a function `entryName(name)`
/// with C linkage. Throws Error naming the kernel or function, the line and the instruction that is not
/// known.
std::vector<std::string> translate(const Outline& outline, const Layout& layout);

}  // namespace tutti::emulator::ptx
