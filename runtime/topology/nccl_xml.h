// NCCL's topology file: what NCCL_TOPO_FILE gives and NCCL_TOPO_DUMP_FILE leaves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti {

/// What a file held, and what of it was not understood and left out ("line 12: attribute \"foo\" of <gpu>").
struct TopologyFile {
  std::vector<Topology> hosts;  ///< by host_hash, where a file was fused of several
  std::vector<std::string> remarks;
};

/// Throws FileError (file_error.h) for what is malformed, truncated or contradicts itself. `name` is for
/// messages.
TopologyFile readNcclXml(std::string_view text, const std::string& name);
/// What readNcclXml reads to the same hosts. Deterministic.
std::string writeNcclXml(const std::vector<Topology>& hosts);

}  // namespace tutti
