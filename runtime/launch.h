// Finds the launcher's word in the environment; see tutti/launch.h.
#pragma once

#include "runtime/process.h"
#include "tutti/launch.h"

namespace tutti {

/// Throws Error naming the variable or file.
tuttiLaunch_t launchFromEnvironment(Process& process);

}  // namespace tutti
