// The machine as a tree of lines.
#pragma once

#include <string>

#include "tools/topo/machine.h"

namespace tutti::topo {

/// Each shape once, under the names of its hosts: what hangs where, links with their speeds, NVLinks, and
/// what could not be seen.
std::string treeText(const Machine& machine);

}  // namespace tutti::topo
