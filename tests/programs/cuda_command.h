// Runs programs on emulated GPUs.
#pragma once

#include <string>
#include <vector>

#include "tests/programs/perf_command.h"

namespace tutti::perf {

/// `program` on `nranks` processes, on a host of as many emulated GPUs as `gpus`.
inline CommandResult onGpus(int gpus, int nranks, const std::string& program, const Arguments& arguments,
                            const std::map<std::string, std::string>& environment = {}) {
  Arguments all{"tutti-run",          "--no-prefix", "--emulate-gpus",
                std::to_string(gpus), "-n",          std::to_string(nranks),
                binary(program),      "--device",    "cuda"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return runCommand(all, environment, std::chrono::seconds(240));
}

}  // namespace tutti::perf
