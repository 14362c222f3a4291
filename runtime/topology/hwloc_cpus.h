// The CPUs of a host in hwloc's XML: NUMA nodes, packages, caches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/core/topology.h"
#include "runtime/topology/xml_file.h"

namespace tutti {

/// An <object> of such a type?
bool isObject(pugi::xml_node element, std::string_view type);
/// Of its <info name value>; empty: none.
std::string_view infoOf(pugi::xml_node object, std::string_view name);

class HwlocCpus {
 public:
  explicit HwlocCpus(XmlFile& file);

  /// Those with CPUs, in the order of their numbers. At least one.
  const std::vector<CpuDetails>& nodes() const { return nodes_; }
  /// The index of the node that has the first of an object's CPUs.
  std::size_t nodeOf(pugi::xml_node object);

 private:
  /// What <info> says of a package or, in old files, of the machine.
  struct Model {
    int package = -1;
    std::string vendor;
    int family = 0;
    int model = 0;
  };

  std::vector<int> cpusOf(pugi::xml_node object);
  Model modelOf(pugi::xml_node object);
  /// Calls `visit` with all objects of a type, in the order of the file.
  template <class Visit>
  void forEach(std::string_view type, Visit visit);
  void readNumaNodes(pugi::xml_node machine);
  void addNode(pugi::xml_node object, int numa);
  void readPackages(pugi::xml_node machine);
  void readCaches();

  XmlFile& file_;
  std::vector<CpuDetails> nodes_;
  std::map<int, std::size_t> node_of_cpu_;
};

}  // namespace tutti
