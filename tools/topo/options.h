// The command line of tutti-topo.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/topo/assumed_nvlinks.h"
#include "tools/topo/machine.h"

namespace tutti::topo {

enum class Format : std::uint8_t { text, xml, json, dot, svg };

struct Options {
  std::vector<std::string> inputs;  ///< files, a host each or several; none: this machine
  int hosts = 1;                    ///< copies of what is looked at
  std::optional<AssumedNvlinks> nvlinks;
  MachineOptions machine;

  bool wants_matrix = false;
  bool wants_rings = false;
  bool wants_trees = false;
  bool wants_bandwidth = false;
  bool wants_check = false;
  std::vector<std::string> compared;  ///< two files, or none

  Format format = Format::text;
  std::string output;  ///< empty: standard output
};

inline constexpr int kBadUsage = 2;

/// Options, or what this process should end with because everything was said already (--help, bad input).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_status = 0;
};

/// Prints help and version to standard output, complaints to standard error.
ParsedOptions parseOptions(int argc, char** argv);

}  // namespace tutti::topo
