// NCCL's topology file: what NCCL_TOPO_FILE gives and NCCL_TOPO_DUMP_FILE leaves.
//
// Tutti writes what NCCL knows as NCCL writes it, and the rest beside it, where NCCL reads past: <cache cpus>
// in <cpu>, and the attributes package of <cpu>, max_link_speed and max_link_width of <pci>, model of <gpu>,
// bw of <nvlink> (MB/s of each, as of <c2c>).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti {

/// What a file held, and what of it was not understood and left out ("line 12: attribute "foo" of <gpu>").
struct TopologyFile {
  std::vector<Topology> hosts;  ///< by host_hash, where a file was fused of several
  std::vector<std::string> remarks;
};

/// Throws FileError (file_error.h) for what is malformed, truncated or contradicts itself. `name` is for
/// messages.
///
/// Files written by hand may leave out <gpu> and <nic>: then the class of a <pci> tells, devices are numbered
/// as they appear, and GPUDirect RDMA is taken as given, but for display cards. All links to NVSwitches of a
/// host end at one node: the first NVSwitch among its PCI devices, or one without a place. An NVLink between
/// GPUs that is listed at one end only exists at both.
TopologyFile readNcclXml(std::string_view text, const std::string& name);

/// What readNcclXml reads to the same hosts: nodes depth first, NVLinks by their ends, a host per host_hash.
/// Topology::unseen goes as comments. Deterministic. A host without a NUMA node cannot be written:
/// std::invalid_argument.
std::string writeNcclXml(const std::vector<Topology>& hosts);

}  // namespace tutti
