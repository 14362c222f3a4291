// NCCL's graph file: the channels, as NCCL_GRAPH_DUMP_FILE leaves them and NCCL_GRAPH_FILE gives them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/topology/search.h"

namespace tutti {

/// For one host's shape. `seats` as the cluster has them: "gpu dev" is the GPU's CUDA number, or where that
/// is not known the place among the host's GPUs. Throws FileError, also for a channel that visits a GPU twice
/// or leaves one out, and for numbers of devices that are not there. Patterns of NCCL that Tutti has not
/// (CollNet, NVLS) are left out.
std::vector<ChannelGraph> readGraphXml(std::string_view text, const std::string& name,
                                       const Topology& topology, const std::vector<int>& seats);
std::string writeGraphXml(const std::vector<ChannelGraph>& graphs, const Topology& topology,
                          const std::vector<int>& seats);

}  // namespace tutti
