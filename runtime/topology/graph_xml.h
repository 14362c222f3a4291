// NCCL's graph file: the channels, as NCCL_GRAPH_DUMP_FILE leaves them and NCCL_GRAPH_FILE gives them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/topology/search.h"

namespace tutti {

/// Those with id 0 (rings) and 1 (trees) that have channels; CollNet's and NVLS's are left out. For one
/// host's shape, with `seats` as the cluster has them. <gpu dev> is the GPU's CUDA number, <net dev> the
/// port's; where seats (or ports) have none of their own, the place among them. Throws FileError, also for a
/// channel that visits a seat twice or leaves one out, for numbers of devices that are not there, and for one
/// without ports where this host has some and there are others. `remarks`: what is left out, with its line.
std::vector<ChannelGraph> readGraphXml(std::string_view text, const std::string& name,
                                       const Topology& topology, const std::vector<int>& seats,
                                       bool has_other_hosts = false,
                                       std::vector<std::string>* remarks = nullptr);

/// What readGraphXml reads to the same.
std::string writeGraphXml(const std::vector<ChannelGraph>& graphs, const Topology& topology,
                          const std::vector<int>& seats);

}  // namespace tutti
