#include "runtime/core/cpu_affinity.h"

#include <sched.h>

#include <array>

namespace tutti {
namespace {

// Linux knows up to 8192.
using CpuSet = std::array<cpu_set_t, 8>;
constexpr int kMostCpus = CPU_SETSIZE * 8;

}  // namespace

std::vector<int> allowedCpus() {
  CpuSet set{};
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(set), set.data()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), sizeof(set), set.data())) cpus.push_back(cpu);
  }
  return cpus;
}

bool bindThread(std::span<const int> cpus) noexcept {
  CpuSet set{};
  for (const int cpu : cpus) {
    if (cpu < kMostCpus) CPU_SET_S(static_cast<std::size_t>(cpu), sizeof(set), set.data());
  }
  return ::sched_setaffinity(0, sizeof(set), set.data()) == 0;
}

}  // namespace tutti
