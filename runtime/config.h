// ncclConfig_t, read with care: it may come from a program that was compiled with another version's header.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nccl.h"

namespace tutti {

/// What of it matters on host memory.
struct CommConfig {
  bool is_blocking = true;
  std::vector<std::string> ignored;  ///< "maxCTAs = 4": given, accepted, without anything to act on
};

/// Reads what both versions know; NULL is the default. `blocks` goes before what it says. Throws
/// Error(ncclInvalidArgument) that names the field when the structure was not initialized, or a value is none
/// that NCCL knows.
CommConfig readConfig(const char* function, const ncclConfig_t* config, std::optional<bool> blocks);

}  // namespace tutti
