// Binds a thread to the CPUs near a rank while the rank's memory and threads are made.
//
// Memory lies where it is first touched, and threads inherit the CPUs of whoever starts them: so it is enough
// to bind the calling thread while a communicator is made. Afterwards it may run where it could before.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti {

/// The CPUs of the NUMA node that `seat` (a node of the topology) hangs at, of those that are `allowed`, or
/// with `ignores_affinity` all. Empty where nothing would be gained, or nothing is known: the node is a
/// guess, its CPUs are not known, none of them is allowed, or no others are. A seat that is a NUMA node
/// itself is known where all that is allowed lies there: other ranks in host memory sit there to be in some
/// order.
std::vector<int> cpusNear(const Topology& topology, int seat, const std::vector<int>& allowed,
                          bool ignores_affinity);

class CpuBinding {
 public:
  /// Binds nothing.
  CpuBinding() = default;
  /// Binds the calling thread, where the system lets it; `cpus` empty: leaves it as it is.
  explicit CpuBinding(const std::vector<int>& cpus);
  CpuBinding(const CpuBinding&) = delete;
  CpuBinding& operator=(const CpuBinding&) = delete;
  CpuBinding(CpuBinding&& other) noexcept;
  CpuBinding& operator=(CpuBinding&& other) noexcept;
  /// In the thread that was bound: it may run where it could before.
  ~CpuBinding() { release(); }

  void release() noexcept;
  bool isBound() const { return !before_.empty(); }
  /// Why the system refused; empty: it did not.
  const std::string& problem() const { return problem_; }

 private:
  std::vector<int> before_;
  std::string problem_;
};

}  // namespace tutti
