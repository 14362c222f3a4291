// The devices of a host in hwloc's XML: PCI, GPUs, NICs.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "runtime/topology/topology_builder.h"
#include "runtime/topology/xml_file.h"

namespace tutti {

class HwlocDevices {
 public:
  HwlocDevices(XmlFile& file, TopologyBuilder& builder) : file_(file), builder_(builder) {}

  /// Adds what hangs at an object itself, not at the objects of CPUs in it, to the node `parent`.
  void add(pugi::xml_node object, int parent);

  /// The node of a PCI device or of what the system makes of it, by the object's gp_index; kNoNode: none.
  int nodeOf(std::int64_t gp_index) const;

 private:
  /// What of hwloc's tree is kept.
  struct Device {
    pugi::xml_node object;
    TopologyNode node;
    std::vector<Device> children = {};
  };

  std::vector<Device> collect(pugi::xml_node parent, int depth);
  std::vector<Device> collectBridge(pugi::xml_node bridge, int depth);
  TopologyNode readPci(pugi::xml_node object);
  bool readDevice(pugi::xml_node object, Device& device);
  GpuDetails readGpu(pugi::xml_node object);
  void addTree(const Device& device, int parent);
  void addPorts(const Device& device, int node);
  void addRdmaPorts(pugi::xml_node system_device, int node);
  void addPort(int node, NetDetails port);

  XmlFile& file_;
  TopologyBuilder& builder_;
  std::map<std::int64_t, int> by_gp_index_;
  std::set<int> gpu_numbers_;
};

}  // namespace tutti
