#include "tools/cuda_emulator/runtime/memory_map.h"

#include <algorithm>
#include <mutex>

namespace tutti::emulator {
namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

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
  return by_end_.extract(found).mapped();
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
