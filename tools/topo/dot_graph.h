// The machine as a graph for Graphviz: tutti-topo --format dot | dot -Tpdf
#pragma once

#include <string>

#include "tools/topo/machine.h"

namespace tutti::topo {

/// One cluster per shape; lines as wide as the links are fast.
std::string dotGraph(const Machine& machine);

}  // namespace tutti::topo
