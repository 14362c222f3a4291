// Which of the hosts that a run pretends to have each rank is on.
#pragma once

#include <string>

namespace tutti::run {

/// A rank's place: its host, and its number among the ranks there.
struct Place {
  int host = 0;
  int local_rank = 0;
  int local_ranks = 1;
};

/// Hosts hold blocks of consecutive ranks; the first `ranks` mod `hosts` of them one rank more than the
/// others. 5 ranks on 2 hosts: 0 1 2 | 3 4. 1 <= hosts <= ranks, 0 <= rank < ranks.
Place placeOf(int rank, int ranks, int hosts);

/// The name by which the library tells host `host` of a run from the others, "node7-host1".
std::string hostName(int host);

}  // namespace tutti::run
