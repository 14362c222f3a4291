// Why a search came out as it did, in words.
#pragma once

#include <string>
#include <vector>

#include "runtime/topology/search.h"

namespace tutti {

/// One line about each shape, and one about each thing that was given up. `paths`: by shape.
std::vector<std::string> reasonsOf(const Cluster& cluster, const std::vector<TopologyPaths>& paths,
                                   const SearchResult& result);

}  // namespace tutti
