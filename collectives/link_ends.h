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

/// Every rank to every other; links are numbered by the rank at the other end.
inline std::vector<LinkEnds> meshLinks(int nranks) {
  std::vector<LinkEnds> links;
  for (int from = 0; from < nranks; ++from) {
    for (int to = 0; to < nranks; ++to) {
      if (from == to) continue;
      links.push_back({from, static_cast<std::uint16_t>(to), to, static_cast<std::uint16_t>(from)});
    }
  }
  return links;
}

}  // namespace tutti
