// What a program that ends never gave back: TUTTI_EMULATOR_CHECK_LEAKS=1.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/graph.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/memory_map.h"
#include "tools/cuda_emulator/runtime/settings.h"

namespace tutti::emulator {
namespace {

constexpr int kLeakStatus = 99;

constexpr MemoryKind kLeakable[] = {MemoryKind::device, MemoryKind::pool,       MemoryKind::managed,
                                    MemoryKind::pinned, MemoryKind::registered, MemoryKind::imported};

void addMemory(std::vector<std::string>& leaks) {
  const auto all = memoryMap().all();
  for (const MemoryKind kind : kLeakable) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    for (const auto& allocation : all) {
      if (allocation.kind != kind) continue;
      ++count;
      bytes += allocation.bytes;
    }
    if (count > 0) leaks.push_back(fmt::format("{} of {} ({} bytes)", count, madeBy(kind), bytes));
  }
}

void addHandles(std::vector<std::string>& leaks, std::size_t count, const char* words) {
  if (count > 0) leaks.push_back(fmt::format("{} of {}", count, words));
}

std::vector<std::string> findLeaks() {
  std::vector<std::string> leaks;
  addMemory(leaks);
  addHandles(leaks, streamHandles().size(), "cudaStreamCreate");
  addHandles(leaks, eventHandles().size(), "cudaEventCreate");
  addHandles(leaks, graphHandles().size(), "cudaGraphCreate or cudaStreamEndCapture");
  addHandles(leaks, executableGraphHandles().size(), "cudaGraphInstantiate");
  addHandles(leaks, userObjectHandles().size(), "cudaUserObjectCreate");
  return leaks;
}

/// Runs after the destructors of the program and of the libraries that use this one.
__attribute__((destructor)) void checkLeaks() {
  if (!settings().check_leaks) return;
  const auto leaks = findLeaks();
  if (leaks.empty()) return;
  say(fmt::format("never given back: {}", fmt::join(leaks, ", ")));
  std::fflush(nullptr);
  ::_exit(kLeakStatus);
}

}  // namespace
}  // namespace tutti::emulator
