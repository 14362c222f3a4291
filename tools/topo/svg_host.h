// One host's boxes and links, drawn.
#pragma once

#include <string>

#include "tools/topo/layout.h"
#include "tools/topo/svg_canvas.h"

namespace tutti::topo {

/// Nodes get the ids `prefix`0, `prefix`1, ... of their indices.
void drawHost(Canvas canvas, const TopologyPaths& paths, const HostLayout& layout, const std::string& prefix);

}  // namespace tutti::topo
