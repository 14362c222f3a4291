// What there is to say of one node, in words.
#pragma once

#include <string>

#include "runtime/topology/paths.h"

namespace tutti::topo {

/// CPUs, models, NVLinks, and a link that is trained below what it could do; not its speed. May be empty.
std::string detailsOf(const TopologyPaths& paths, int node);

}  // namespace tutti::topo
