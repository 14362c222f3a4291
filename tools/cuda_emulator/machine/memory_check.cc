#include "tools/cuda_emulator/machine/memory_check.h"

#include <fmt/format.h>

#include <bit>
#include <map>
#include <mutex>
#include <string_view>

#include "tools/cuda_emulator/machine/block.h"
#include "tools/cuda_emulator/machine/carrier.h"
#include "tools/cuda_emulator/machine/environment.h"
#include "tools/cuda_emulator/machine/launch.h"

namespace tutti::emulator {
namespace {

const KnownMemory* known_memory = nullptr;

/// Pages that nobody may map, so that the members of a null pointer's object are seen to be that.
constexpr u64 kNullBytes = 4096;
/// That close to shared memory, or to a variable, an address is meant for it.
constexpr u64 kNearShared = u64{64} * 1024;
constexpr u64 kNearVariable = 1024;
/// Addresses in the shared window have 32 bits.
constexpr u64 kWindowBytes = u64{1} << 32;

class Heap {
 public:
  void add(u64 address, u64 bytes) {
    const std::lock_guard lock(mutex_);
    by_begin_[address] = bytes;
  }
  void remove(u64 address) {
    const std::lock_guard lock(mutex_);
    by_begin_.erase(address);
  }
  MemoryRange find(u64 address) {
    const std::lock_guard lock(mutex_);
    const auto after = by_begin_.upper_bound(address);
    if (after == by_begin_.begin()) return {};
    const auto& [begin, bytes] = *std::prev(after);
    return address - begin < bytes ? MemoryRange{begin, bytes} : MemoryRange{};
  }

 private:
  std::mutex mutex_;
  std::map<u64, u64> by_begin_;
};

Heap& heap() {
  static auto& all = *new Heap;
  return all;
}

u64 number(const void* address) { return reinterpret_cast<u64>(address); }

MemoryRange sharedOf(const Thread& thread) { return {number(thread.shared), thread.shared_bytes}; }

/// The range that holds the address's first byte.
MemoryRange rangeOf(const CudaThread& thread, u64 address) {
  const LaunchPlan& plan = thread.block->launch().plan();
  const auto holds = [address](const MemoryRange& range) { return address - range.begin < range.bytes; };
  const MemoryRange own[] = {
      sharedOf(thread), {number(plan.arguments), plan.argument_bytes}, thread.carrier->stack()};
  for (const MemoryRange& range : own) {
    if (holds(range)) return range;
  }
  for (const MemoryRange& range : plan.variable_ranges) {
    if (holds(range)) return range;
  }
  if (const MemoryRange range = heap().find(address); range.bytes != 0) return range;
  return known_memory == nullptr ? MemoryRange{} : known_memory->find(address);
}

/// Empty where the address is not near the range.
std::string describe(u64 address, const MemoryRange& range, u64 near, const char* what) {
  const u64 end = range.begin + range.bytes;
  if (address >= end && address - end < near)
    return fmt::format("{} bytes past the end of {} of {} bytes", address - end, what, range.bytes);
  if (address < range.begin && range.begin - address <= near)
    return fmt::format("{} bytes before {} of {} bytes", range.begin - address, what, range.bytes);
  return {};
}

std::string describe(const CudaThread& thread, u64 address) {
  if (address < kNullBytes) return "a null pointer";
  for (const u64 meant : {address, address - kWindowBytes}) {
    std::string text = describe(meant, sharedOf(thread), kNearShared, "the block's shared memory");
    if (!text.empty()) return text;
  }
  for (const MemoryRange& range : thread.block->launch().plan().variable_ranges) {
    if (std::string text = describe(address, range, kNearVariable, "a variable"); !text.empty()) return text;
  }
  return known_memory == nullptr ? "memory that CUDA does not know" : known_memory->describe(address);
}

}  // namespace

bool memoryIsChecked() {
  static const bool is_checked = flagOf("TUTTI_EMULATED_MEMCHECK", false);
  return is_checked;
}

void checkAgainst(const KnownMemory& memory) { known_memory = &memory; }

void prepareChecks(CudaThread& thread) {
  static constexpr u64 kNever = 0;
  thread.removals = known_memory == nullptr ? &kNever : known_memory->removals();
}

std::string checkAccess(CudaThread& thread, u64 address, u32 bytes) {
  const u64 removals = __atomic_load_n(thread.removals, __ATOMIC_ACQUIRE);
  if (removals != thread.known_removals) {
    for (MemoryRange& range : thread.known) range = {};
    thread.known_removals = removals;
  }
  const MemoryRange range = rangeOf(thread, address);
  if (range.bytes == 0) {
    return fmt::format("access of {} bytes at {:#x}: {}", bytes, address, describe(thread, address));
  }
  const u64 left = range.bytes - (address - range.begin);
  if (bytes > left) {
    return fmt::format("access of {} bytes at {:#x}: only {} of them are within the {} bytes at {:#x}", bytes,
                       address, left, range.bytes, range.begin);
  }
  thread.known[thread.next_known++ % std::size(thread.known)] = range;
  return {};
}

u64 allocateOnHeap(u64 bytes) {
  const u64 address = number(std::malloc(bytes));
  if (memoryIsChecked() && address != 0) heap().add(address, bytes);
  return address;
}

void freeOnHeap(u64 address) {
  if (memoryIsChecked()) heap().remove(address);
  std::free(std::bit_cast<void*>(address));
}

}  // namespace tutti::emulator
