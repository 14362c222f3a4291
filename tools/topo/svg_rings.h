// A host's rings under its picture: each different one in a strip and colour of its own, with a stop under
// every GPU and NIC that it visits.
#pragma once

#include "tools/topo/layout.h"
#include "tools/topo/machine.h"
#include "tools/topo/svg_canvas.h"

namespace tutti::topo {

/// How high the strips are in all; 0 where there is no ring to draw.
double ringsHeight(const ChannelGraph& rings);

/// From `top` downwards. `is_closed`: there is one host only, so rings end where they began.
void drawRings(Canvas canvas, const TopologyPaths& paths, const HostLayout& layout,
               const std::vector<int>& seats, const ChannelGraph& rings, bool is_closed, double top);

}  // namespace tutti::topo
