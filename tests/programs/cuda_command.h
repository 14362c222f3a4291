// Runs programs on GPUs.
#pragma once

#include <string>
#include <vector>

#include "tests/harness/gpus.h"
#include "tests/programs/perf_command.h"

namespace tutti::perf {

/// `program` on `nranks` processes, on a host of as many GPUs as `gpus`.
inline CommandResult onGpus(int gpus, int nranks, const std::string& program, const Arguments& arguments,
                            const std::map<std::string, std::string>& environment = {}) {
  auto [all, variables] = test::launchOnGpus(gpus);
  for (const auto& [name, value] : environment) variables[name] = value;
  return runCommand(all +
                        Arguments{"--kill-after", "60", "--no-prefix", "-n", std::to_string(nranks),
                                  binary(program), "--device", "cuda"} +
                        arguments,
                    variables, kPatience);
}

}  // namespace tutti::perf
