// What a search for channels works on: places to visit, ports to leave by, and which links each leg of a
// route uses. Without a word of hosts and devices, so that tests can invent it.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/topology/paths.h"

namespace tutti {

/// What a byte takes of a link, in tenths of a byte: whole numbers, so that sums are exact.
struct LinkUse {
  int link = 0;
  int tenths = 10;
};

/// From one place to another, or between a port and a place.
struct Leg {
  PathClass path_class = PathClass::dis;  ///< dis: there is no way
  std::vector<LinkUse> links;             ///< one that is passed twice is there twice
};

/// What one channel looks like.
enum class RouteForm : std::uint8_t {
  ring,         ///< through all places and back to the first
  chain,        ///< through all places, both ways: a tree's part inside a host
  ported_ring,  ///< in by a port, through all places, out by a port
  ported_chain  ///< through all places, both ways, and both ways between a port and the first
};
/// A ring of n ranks sends 2(n - 1)/n of a message over each leg. A tree sends it up and down, so half as
/// much over each direction of a leg; but over a host's port in both trees of the double tree together as
/// much as the ring. This is what makes speeds of both comparable.
inline constexpr double kChainShare = 0.5;

constexpr bool hasPorts(RouteForm form) { return form >= RouteForm::ported_ring; }
constexpr bool isBothWays(RouteForm form) {
  return form == RouteForm::chain || form == RouteForm::ported_chain;
}

struct ChannelProblem {
  struct Link {
    int from = 0;  ///< nodes, in any numbering
    int to = 0;
    double gbytes_per_s = 0;
  };
  RouteForm form = RouteForm::ring;
  std::vector<Link> links;
  std::vector<int> places;   ///< the node of each
  std::vector<int> ports;    ///< the same
  std::vector<Leg> between;  ///< from * places + to
  std::vector<Leg> in;       ///< port * places + place
  std::vector<Leg> out;      ///< the same, from the place to the port

  std::size_t count() const { return places.size(); }
  const Leg& leg(std::size_t from, std::size_t to) const { return between[from * count() + to]; }
  const Leg& legIn(std::size_t port, std::size_t place) const { return in[port * count() + place]; }
  const Leg& legOut(std::size_t port, std::size_t place) const { return out[port * count() + place]; }
};

/// Which legs may be used.
struct RouteRules {
  PathClass inside = PathClass::sys;    ///< the worst between places
  PathClass to_ports = PathClass::sys;  ///< the worst between ports and places
  bool crosses_ports = false;           ///< may a route leave by another port than it came in by
};

}  // namespace tutti
