// The CPUs that threads may run on, also beyond the 1024 of one cpu_set_t.
#pragma once

#include <span>
#include <vector>

namespace tutti {

/// Those of the calling thread, ascending; empty, with errno, where the system does not tell.
std::vector<int> allowedCpus();

/// Binds the calling thread. False with errno. Async-signal-safe.
bool bindThread(std::span<const int> cpus) noexcept;

}  // namespace tutti
