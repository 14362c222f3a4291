// The rings and trees that were found, and what they are good for.
#pragma once

#include <string>
#include <vector>

#include "tools/topo/machine.h"

namespace tutti::topo {

/// Channels of one shape that are alike: by number, from 0.
struct EqualChannels {
  HostChannel channel;
  std::vector<int> numbers;
};
/// In the order of their first numbers.
std::vector<EqualChannels> equalChannels(const ChannelGraph& graph);
/// "channel 3", "channels 0-3,8".
std::string channelWords(const std::vector<int>& numbers);

std::string ringsText(const Machine& machine);
std::string treesText(const Machine& machine);
/// Per collective: bus bandwidth, the algorithm, what limits.
std::string bandwidthText(const Machine& machine);

}  // namespace tutti::topo
