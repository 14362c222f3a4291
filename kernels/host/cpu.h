// What takes instructions of its own on each kind of CPU; of cpu_x86.cc, cpu_aarch64.cc and
// cpu_portable.cc one is built.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

/// Copies with streaming stores, which go past the caches. Not ordered by a release store: see
/// streamingFence().
void streamingCopy(std::byte* to, const std::byte* from, std::size_t bytes);

/// The calling thread's floating-point control word; 0 where none is known.
std::uint32_t floatControl();
void setFloatControl(std::uint32_t control);

/// Rounds to nearest, keeps denormals, masks exceptions.
extern const std::uint32_t kDefaultFloatControl;

}  // namespace tutti
