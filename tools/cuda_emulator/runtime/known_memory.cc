#include "tools/cuda_emulator/runtime/known_memory.h"

#include <fmt/format.h>

#include <mutex>
#include <string>

#include "tools/cuda_emulator/machine/memory_check.h"
#include "tools/cuda_emulator/runtime/memory_map.h"

namespace tutti::emulator {
namespace {

class MapOfMemory final : public KnownMemory {
 public:
  MemoryRange find(u64 address) const override {
    const auto found = memoryMap().find(reinterpret_cast<const void*>(address));
    if (!found) return {};
    return {reinterpret_cast<u64>(found->base), found->bytes};
  }
  const u64* removals() const override { return memoryMap().removals(); }

  std::string describe(u64 address) const override {
    const auto near = memoryMap().near(reinterpret_cast<const void*>(address));
    if (!near.allocation) return "memory that CUDA does not know";
    const Allocation& allocation = *near.allocation;
    const auto begin = reinterpret_cast<u64>(allocation.base);
    const std::string what =
        fmt::format("the {} bytes at {:#x} of {}", allocation.bytes, begin, madeBy(allocation.kind));
    if (near.is_freed) return fmt::format("inside of {}, which were given back", what);
    if (address < begin) return fmt::format("{} bytes before {}", begin - address, what);
    return fmt::format("{} bytes past the end of {}", address - begin - allocation.bytes, what);
  }
};

}  // namespace

void checkAgainstMemoryMap() {
  static std::once_flag once;
  if (memoryIsChecked()) std::call_once(once, [] { checkAgainst(*new MapOfMemory); });
}

}  // namespace tutti::emulator
