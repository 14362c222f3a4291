// The cores that this process may use.
#pragma once

#include <vector>

namespace tutti::run {

/// Logical CPUs of the affinity mask, ascending. Throws std::system_error.
std::vector<int> allowedCores();

/// Pins the calling process to `core`. False with errno. Async-signal-safe.
bool pinToCore(int core) noexcept;

}  // namespace tutti::run
