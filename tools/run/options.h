// The command line of tutti-run.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/cores.h"

namespace tutti::run {

inline constexpr int kMaxRanks = 1024;

struct Options {
  int ranks = 0;
  std::optional<int> hosts;          ///< that the ranks are divided among, 1 to `ranks`; absent: this one
  std::optional<int> emulated_gpus;  ///< that each host has, 0 to kMaxEmulatedGpus; absent: those there are
  std::optional<BindTo> bind;        ///< absent: see bindByDefault()
  bool prefix = true;                ///< output lines carry their rank
  std::optional<int> port;           ///< of the rendezvous; any free one when absent
  std::chrono::milliseconds grace;   ///< from a stop signal to SIGKILL
  std::chrono::milliseconds kill_after;  ///< from the first failure to SIGTERM for the others
  std::vector<std::string> command;      ///< program and its arguments; never empty
};

/// Options, or what this process should end with because everything was said already (--help, bad input).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_status = 0;
};

/// Prints help and version to standard output, complaints to standard error (status 2).
ParsedOptions parseOptions(int argc, char** argv);

}  // namespace tutti::run
