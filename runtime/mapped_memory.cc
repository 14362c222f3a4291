#include "runtime/mapped_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace tutti {

std::string whyNotAccessible(const void* address, std::uint64_t bytes, bool writes) {
  const auto begin = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
  std::uint64_t end = 0;
  if (__builtin_add_overflow(begin, bytes, &end)) return "it ends beyond what addresses can reach";
  std::ifstream maps("/proc/self/maps");
  if (!maps) return "";  // nobody to ask
  // Up to `next` everything is accessible; mappings come in order of their addresses.
  std::uint64_t next = begin;
  for (std::string line; next < end && std::getline(maps, line);) {
    unsigned long long first = 0;
    unsigned long long last = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &first, &last, access) != 3) continue;
    if (last <= next) continue;
    if (first > next) break;
    if (access[0] != 'r') return fmt::format("memory at {:#x} must not be read", next);
    if (writes && access[1] != 'w') return fmt::format("memory at {:#x} must not be written", next);
    next = last;
  }
  return next >= end ? "" : fmt::format("there is no memory at {:#x}", next);
}

}  // namespace tutti
