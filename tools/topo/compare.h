// What differs between two hosts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/topo/machine.h"

namespace tutti::topo {

struct Difference {
  std::string part;  ///< "GPU 3 (0000:3b:00.0): PCI link"
  std::string in_a;  ///< "16 GT/s x16"; "missing"
  std::string in_b;
};

/// Devices are the same by bus id; those left over by their order. In the order of A's nodes, then what B
/// alone has.
std::vector<Difference> differencesOf(const TopologyPaths& a, const TopologyPaths& b);

/// With what the differences cost, where bandwidths differ. `a` and `b` are machines of one host each.
std::string compareText(const Machine& a, const Machine& b);
nlohmann::ordered_json compareJson(const Machine& a, const Machine& b);

}  // namespace tutti::topo
