// Which rank's outbound link is which rank's inbound link: the shape of one lane, for Trace and Sim.
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

struct LinkEnds {
  int from = 0;
  std::uint16_t outbound = 0;  ///< number of the link on `from`
  int to = 0;
  std::uint16_t inbound = 0;  ///< number of the link on `to`
};

/// Every rank sends to the next: number 0 on both sides. Empty for a single rank.
inline std::vector<LinkEnds> ringLinks(int nranks) {
  std::vector<LinkEnds> links;
  for (int rank = 0; nranks > 1 && rank < nranks; ++rank) links.push_back({rank, 0, (rank + 1) % nranks, 0});
  return links;
}

}  // namespace tutti
