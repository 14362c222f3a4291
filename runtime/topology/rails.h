// Rails: the ports of all hosts that hang at one switch outside. By custom the first port of every host is
// one rail, the second the next.
#pragma once

#include <vector>

#include "runtime/topology/search.h"

namespace tutti {

/// By shape and node of a `net`: its rail; other nodes: kNoNode. Where the cards of all hosts sit in the same
/// slots (bus ids), those tell; so a host that lacks a card lacks its rail. Else the position tells.
std::vector<std::vector<int>> railsOf(const Cluster& cluster);

/// Leaves each shape as many channels as the one with fewest has, so chosen and ordered that channel c uses
/// the same rail everywhere, as far as there are such.
void alignRails(const Cluster& cluster, std::vector<ChannelGraph>& rings);

/// By host: whether its channels are walked backwards. Where a channel comes in by one rail and leaves by
/// another, the next host takes it in by the latter.
std::vector<bool> hostsWalkedBackwards(const Cluster& cluster, const std::vector<TopologyPaths>& paths,
                                       const std::vector<ChannelGraph>& rings, const SearchRules& rules);

}  // namespace tutti
