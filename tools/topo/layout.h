// Where the parts of a host stand in its picture: sockets side by side, under each what hangs at it, the GPUs
// and NICs in one row at the bottom, NVLinks under that row. Units of the drawing; y grows downwards.
#pragma once

#include <string>
#include <vector>

#include "runtime/topology/paths.h"

namespace tutti::topo {

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double middle() const { return x + width / 2; }
};

struct PlacedNode {
  int node = kNoNode;
  Box box;
};

struct PlacedFrame {
  std::string label;  ///< may be empty
  Box box;
};

enum class Medium { pci, nvlink, c2c, socket, net };

/// A link, straight down.
struct Wire {
  Medium medium = Medium::pci;
  double x = 0;
  double top = 0;
  double bottom = 0;
  double gbytes_per_s = 0;  ///< one direction
  std::string title;        ///< in words, for who points at it
  bool has_label = true;
};

/// NVLinks between two GPUs: a bow under their boxes.
struct Bow {
  Medium medium = Medium::nvlink;
  double left = 0;
  double right = 0;
  double start = 0;  ///< the boxes' lower edge
  double top = 0;    ///< where it begins to bend
  double depth = 0;
  double gbytes_per_s = 0;
  std::string label;
  std::string title;
};

struct HostLayout {
  double width = 0;
  double height = 0;
  std::vector<PlacedFrame> frames;  ///< outer before inner
  std::vector<PlacedNode> nodes;    ///< every node that is drawn, once
  std::vector<Wire> wires;
  std::vector<Bow> bows;
  Box between_sockets;  ///< a bar above the sockets; width 0: none
  double between_sockets_gbytes = 0;
  std::vector<int> left_out;  ///< bridges that lead nowhere, or are folded into a wire

  /// nullptr: not drawn.
  const Box* find(int node) const;
};

/// `title_height`: what is kept free at the top.
HostLayout layOut(const TopologyPaths& paths, double title_height);

}  // namespace tutti::topo
