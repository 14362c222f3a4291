// How many channels at which speed: routes chosen so that they fit on the links together.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/topology/channel_problem.h"
#include "runtime/topology/cuts.h"
#include "runtime/topology/routes.h"

namespace tutti {

/// Channels of one speed. A route may be there several times.
struct Packing {
  std::vector<int> routes;  ///< by channel
  double gbytes_per_s = 0;  ///< of each channel
  bool is_proven = true;    ///< false: steps ran out, there may be better
  std::uint64_t steps = 0;

  double total() const { return static_cast<double>(routes.size()) * gbytes_per_s; }
};

/// More channels must carry so many times as much: each costs threads and buffers.
inline constexpr double kWorthMoreChannels = 1.05;

struct PackingRules {
  int most_channels = 32;
  /// More channels must carry so many times as much: each costs threads and buffers.
  double worth = 1.1;
  /// Most routes that are tried. One takes some 50 ns.
  std::uint64_t most_steps = std::uint64_t{1} << 17;
};

/// One channel, or of up to two, four, ... those that carry most in all, where that is more than `worth`
/// times what fewer do: so within that of the most there is.
///
/// Every speed that they can have is the rate of a link divided by how often all channels use it. Those at
/// which the cuts leave room for more than the best so far are tried in turn, each by branch and bound over
/// the routes.
Packing pack(const ChannelProblem& problem, const Routes& routes, const std::vector<Cut>& cuts,
             const PackingRules& rules);

}  // namespace tutti
