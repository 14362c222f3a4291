#include "tools/cuda_emulator/runtime/memory_map.h"

#include <algorithm>
#include <iterator>
#include <mutex>

#include "tools/cuda_emulator/machine/memory_check.h"

namespace tutti::emulator {
namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

const char* madeBy(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::device:
      return "cudaMalloc";
    case MemoryKind::pool:
      return "cudaMallocAsync";
    case MemoryKind::variable:
      return "a variable";
    case MemoryKind::imported:
      return "cudaIpcOpenMemHandle";
    case MemoryKind::managed:
      return "cudaMallocManaged";
    case MemoryKind::pinned:
      return "cudaHostAlloc";
    case MemoryKind::registered:
      return "cudaHostRegister";
  }
  return "";
}

bool Allocation::holds(const void* first, std::size_t count) const {
  const auto offset = number(first) - number(base);
  return offset <= bytes && count <= bytes - offset;
}

bool MemoryMap::add(const Allocation& allocation) {
  const std::unique_lock lock(mutex_);
  const auto begin = number(allocation.base);
  const auto next = by_end_.upper_bound(begin);
  if (next != by_end_.end() && number(next->second.base) < begin + allocation.bytes) return false;
  by_end_.emplace(begin + allocation.bytes, allocation).first->second.id = ++last_id_;
  return true;
}

std::optional<Allocation> MemoryMap::find(const void* address) const {
  const std::shared_lock lock(mutex_);
  const auto found = by_end_.upper_bound(number(address));
  if (found == by_end_.end() || number(address) < number(found->second.base)) return std::nullopt;
  return found->second;
}

std::optional<Allocation> MemoryMap::remove(const void* base, std::initializer_list<MemoryKind> kinds) {
  const std::unique_lock lock(mutex_);
  const auto found = by_end_.upper_bound(number(base));
  if (found == by_end_.end() || found->second.base != base) return std::nullopt;
  if (std::find(kinds.begin(), kinds.end(), found->second.kind) == kinds.end()) return std::nullopt;
  __atomic_fetch_add(&removals_, 1, __ATOMIC_RELEASE);
  Allocation removed = by_end_.extract(found).mapped();
  if (memoryIsChecked()) {
    Allocation& freed = freed_[number(removed.base) + removed.bytes] = removed;
    freed.mapping = nullptr;
  }
  return removed;
}

MemoryMap::Near MemoryMap::near(const void* address) const {
  const std::shared_lock lock(mutex_);
  const auto at = number(address);
  const auto freed = freed_.upper_bound(at);
  if (freed != freed_.end() && freed->second.holds(address, 1)) return {freed->second, true};
  Near result;
  std::uintptr_t distance = std::uintptr_t{1} << 20;
  const auto after = by_end_.upper_bound(at);
  if (after != by_end_.end() && number(after->second.base) - at < distance) {
    distance = number(after->second.base) - at;
    result.allocation = after->second;
  }
  if (after != by_end_.begin() && at - std::prev(after)->first < distance)
    result.allocation = std::prev(after)->second;
  return result;
}

std::vector<Allocation> MemoryMap::ofDevice(int device) const {
  auto result = all();
  std::erase_if(result, [&](const Allocation& allocation) { return allocation.device != device; });
  return result;
}

std::vector<Allocation> MemoryMap::all() const {
  const std::shared_lock lock(mutex_);
  std::vector<Allocation> result;
  result.reserve(by_end_.size());
  for (const auto& [end, allocation] : by_end_) result.push_back(allocation);
  return result;
}

MemoryMap& memoryMap() {
  static auto* const result = new MemoryMap;  // outlives the streams' threads
  return *result;
}

}  // namespace tutti::emulator
