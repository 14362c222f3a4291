#include "runtime/cpu_binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/core/cpu_affinity.h"

namespace tutti {

std::vector<int> cpusNear(const Topology& topology, int seat, const std::vector<int>& allowed,
                          bool ignores_affinity) {
  const int numa = seat == kNoNode ? kNoNode : topology.numaOf(seat);
  if (numa == kNoNode || !topology.isNumaTold(seat)) return {};
  const std::vector<int>& near = topology.nodes[static_cast<std::size_t>(numa)].cpu.cpus;
  if (seat == numa && !std::ranges::includes(near, allowed)) return {};
  std::vector<int> cpus = near;
  if (!ignores_affinity) {
    cpus.clear();
    std::ranges::set_intersection(near, allowed, std::back_inserter(cpus));
  }
  return cpus == allowed ? std::vector<int>() : cpus;
}

CpuBinding::CpuBinding(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  std::vector<int> before = allowedCpus();
  if (before.empty()) return;
  if (bindThread(cpus)) {
    before_ = std::move(before);
  } else {
    problem_ = fmt::format("sched_setaffinity: {}", std::strerror(errno));
  }
}

CpuBinding::CpuBinding(CpuBinding&& other) noexcept
    : before_(std::exchange(other.before_, {})), problem_(std::move(other.problem_)) {}

CpuBinding& CpuBinding::operator=(CpuBinding&& other) noexcept {
  release();
  before_ = std::exchange(other.before_, {});
  problem_ = std::move(other.problem_);
  return *this;
}

void CpuBinding::release() noexcept {
  if (before_.empty()) return;
  bindThread(before_);
  before_.clear();
}

}  // namespace tutti
