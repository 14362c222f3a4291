// All routes that are worth using for a channel.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/topology/channel_problem.h"

namespace tutti {

struct Route {
  int in = -1;  ///< ports
  int out = -1;
  std::vector<int> order;             ///< places
  std::vector<std::uint16_t> uses;    ///< by link, in tenths
  PathClass inside = PathClass::loc;  ///< the worst of its legs
  PathClass to_ports = PathClass::loc;
  int hops = 0;  ///< links passed
};

struct Routes {
  std::vector<Route> routes;  ///< by hops, then ports, then order
  bool is_complete = true;    ///< false: there were too many, and the narrow ones were left out on the way
};

/// Most partial routes of one length that are followed, times the places squared: 2,048 of 8 places, 512 of
/// 16; of each port its part. Where there are more than kManyLinks, so many times fewer.
inline constexpr std::size_t kMostPartialRoutes = std::size_t{1} << 17;
inline constexpr std::size_t kManyLinks = 256;
/// Most whole routes that are listed; of each port its part.
inline constexpr std::size_t kMostRoutes = 512;

/// Every route, but for those that use no link less than another that is listed. At most 64 places.
///
/// Routes grow by one place at a time. Of those that have visited the same places and stand at the same one,
/// what comes after is the same; so one that uses each link at least as often as another is dropped at once.
/// Eight GPUs on a switch have 5,040 rings, but never more than 140 partial ones at a time.
Routes findRoutes(const ChannelProblem& problem, const RouteRules& rules);

}  // namespace tutti
