// How speeds, links and CPUs are written, the same in text, pictures and findings.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/topology.h"
#include "runtime/topology/paths.h"

namespace tutti::topo {

inline const TopologyNode& nodeAt(const Topology& topology, int node) {
  return topology.nodes[static_cast<std::size_t>(node)];
}

/// "24 GB/s", "12.5 GB/s", "0.31 GB/s": decimal, one direction.
std::string gbytesWords(double gbytes_per_s);
/// Without the unit: "24", "240".
std::string shortGBytes(double gbytes_per_s);
/// "16 GT/s x16", "x8", "" where nothing is known.
std::string trainedWords(const PciLink& link);
/// What the link could do, the same; "" where that is not known.
std::string mostWords(const PciLink& link);
/// Trained below what device and slot could do.
bool isBelowMost(const PciLink& link);
/// "200 Gb/s", "speed unknown".
std::string portSpeedWords(const NetDetails& net);
/// "x86_64 GenuineIntel, family 6 model 85"; "" where nothing is known.
std::string processorWords(const CpuDetails& cpu);
/// "sm_80"; "" where it is not known.
std::string capabilityWords(const GpuDetails& gpu);
/// "1 NIC", "2 NICs".
std::string countWords(std::size_t count, const std::string& what);

/// To other NUMA nodes; 0 where there are none.
double socketGBytesOf(const TopologyPaths& paths, int node);
/// Of the PCI link from `node` to its parent.
double linkGBytes(const TopologyPaths& paths, int node);

/// NVLinks of one GPU to all of one other node.
struct NvlinkSum {
  int to = kNoNode;
  int count = 0;
  double gbytes_per_s = 0;  ///< of all together, one direction
  bool is_c2c = false;
};
/// By the other node's index.
std::vector<NvlinkSum> nvlinksOf(const TopologyPaths& paths, int node);

/// The GPUs in the order of their CUDA numbers, those without a number behind.
std::vector<int> gpusInOrder(const Topology& topology);
/// For programs: a JSON value, a CSS class: "numa_node".
const char* wordOf(TopologyKind kind);
/// "GPU 3": by CUDA's number, or else the place among the GPUs.
std::string shortLabel(const Topology& topology, int node);

}  // namespace tutti::topo
