// A topology as a reader of a file fills it, element by element.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/core/topology.h"

namespace tutti {

// Kinds of PCI devices by their class, of which the first byte is the base class.
bool isGpuClass(std::uint32_t device_class);     ///< display controllers, 3D accelerators among them
bool isNicClass(std::uint32_t device_class);     ///< Ethernet, InfiniBand and other networks
bool isBridgeClass(std::uint32_t device_class);  ///< from PCI to PCI
/// "Other bridge": NVIDIA's are NVSwitches; anybody's, where the vendor is not known.
bool isNvSwitch(const PciIdentity& pci);
inline constexpr std::uint32_t kDisplayClass = 0x030000;  ///< a card with a display: no GPUDirect RDMA

/// A device number that complete() replaces.
inline constexpr int kUnnumbered = -2;
/// Links between two nodes are at most so many.
inline constexpr int kMostLinks = 255;

/// `nodes` of `topology` may be changed, and must be added to by add() only.
class TopologyBuilder {
 public:
  Topology topology;

  /// Returns its index. Its bus id must be new.
  int add(TopologyNode node);
  TopologyNode& at(int node) { return topology.nodes[static_cast<std::size_t>(node)]; }
  /// As Topology::find, but fast.
  int find(const std::string& bus_id) const;

  /// Links in one direction; alike ones between the same ends become one entry. False: too many.
  bool connect(const NvLinks& links);
  /// The node at which links to NVSwitches end. Only when all PCI devices are there.
  int nvSwitch();
  void connectSwitches(int a, int b);

  /// Numbers devices, makes links between GPUs that exist in one direction exist in both, puts links in
  /// order. Returns the directions that were missing. Last of all.
  std::vector<std::pair<int, int>> complete();

 private:
  using LinkKey = std::tuple<int, int, bool, double>;  ///< from, to, is_c2c, gbytes_per_s

  std::vector<std::pair<int, int>> addOpposites();

  std::unordered_map<std::string, int> by_bus_id_;
  std::map<LinkKey, int> links_;  ///< counts
  int nvswitch_ = kNoNode;
};

}  // namespace tutti
