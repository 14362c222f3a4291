// How far two things of a machine are from each other: the classes that people know from NCCL, and that its
// variables name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

/// The worst thing that a path passes, best first; the names are NCCL's.
enum class PathClass : std::uint8_t {
  loc,  ///< itself
  nvl,  ///< NVLinks, also through NVSwitches
  nvb,  ///< NVLinks through another GPU
  c2c,  ///< a CPU that hangs at the GPU by a coherent link
  pix,  ///< one PCI switch
  pxb,  ///< several PCI switches, but no CPU
  p2c,  ///< to a NIC by way of a C2C-attached CPU
  pxn,  ///< to a NIC through a peer GPU by NVLink
  phb,  ///< through a CPU
  sys,  ///< from socket to socket
  net,  ///< between hosts
  dis,  ///< no path
};
std::string_view name(PathClass path_class);  ///< "NVL"

/// By name ("PXB", any case), or by the numbers that NCCL once had for them: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4
/// and more SYS. nullopt: neither.
std::optional<PathClass> pathClassOf(std::string_view text);

}  // namespace tutti
