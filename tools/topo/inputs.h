// The hosts that the command line asks for.
#pragma once

#include <string>
#include <vector>

#include "tools/topo/machine.h"
#include "tools/topo/options.h"

namespace tutti::topo {

struct Inputs {
  std::vector<NamedHost> hosts;
  std::vector<std::string> remarks;  ///< what of the files was left out
  std::vector<std::string> notices;  ///< a line for each file that has some

  /// What was left out of a file, which is named in both.
  void add(const std::string& path, const std::vector<std::string>& remarks_on_it);
};

/// This machine, or the files, each host as often as asked for, with the NVLinks to assume. Hosts are named
/// after their files; where there are several of one file, numbered. Throws FileError, and
/// std::invalid_argument for files without a host and NVLinks that do not fit.
Inputs loadInputs(const Options& options);

/// One side of a comparison: a file with one host.
Inputs loadOne(const std::string& path, const Options& options);

}  // namespace tutti::topo
