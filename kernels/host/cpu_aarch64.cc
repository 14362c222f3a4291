// 64-bit ARM: the control word is FPCR, whose flush-to-zero bits callers may have set. Vectors are the
// compiler's.
#include <array>
#include <cstring>

#include "kernels/host/combine_paths.h"
#include "kernels/host/cpu.h"

namespace tutti {

void streamingCopy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void streamingFence() {}

std::uint32_t floatControl() {
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return static_cast<std::uint32_t>(control);
}

void setFloatControl(std::uint32_t control) { asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{control})); }

const std::uint32_t kDefaultFloatControl = 0;

std::span<const CombinePath> combinePaths() {
  static constexpr std::array<CombinePath, 1> kPaths = {{{"neon", &kCombinePortable}}};
  return kPaths;
}

}  // namespace tutti
