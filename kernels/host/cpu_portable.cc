// A CPU of which nothing is known but what C++ promises.
#include "kernels/host/cpu.h"

#include <array>
#include <cstring>

#include "kernels/host/combine_paths.h"

namespace tutti {

void streamingCopy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void streamingFence() {}

std::uint32_t floatControl() { return 0; }

void setFloatControl(std::uint32_t /*control*/) {}

const std::uint32_t kDefaultFloatControl = 0;

std::span<const CombinePath> combinePaths() {
  static constexpr std::array<CombinePath, 1> kPaths = {{{"portable", &kCombinePortable}}};
  return kPaths;
}

}  // namespace tutti
