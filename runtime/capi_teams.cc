// The C API of teams: arithmetic on the numbers of ranks.
#include <algorithm>

#include "runtime/capi_support.h"
#include "tutti/nccl_newer.h"

namespace {

using tutti::Communicator;
using namespace tutti::capi;  // NOLINT(google-build-using-namespace): written for these sources

/// Ranks of this host: consecutive where all hosts have equally many, else this one alone.
int ranksPerHost(const Communicator& communicator) {
  return std::max(1, communicator.layout().ranks_per_host);
}

ncclTeam_t lsaTeam(const Communicator& communicator) {
  const int size = ranksPerHost(communicator);
  return {.nRanks = size, .rank = communicator.rank() % size, .stride = 1};
}

int worldRank(const Communicator& communicator, const ncclTeam_t& team, int rank) {
  return communicator.rank() + (rank - team.rank) * team.stride;
}

/// What `ask` says of a communicator, or `otherwise` with words in ncclGetLastError.
template <class Answer, class Ask>
Answer answer(const char* function, ncclComm_t comm, Answer otherwise, const Ask& ask) {
  Answer result = otherwise;
  guarded([&] { result = ask(*communicatorOf(function, comm)); });
  return result;
}

}  // namespace

TUTTI_API(ncclTeam_t, ncclTeamWorld, ncclComm_t comm) {
  return answer("ncclTeamWorld", comm, ncclTeam_t{}, [](const Communicator& communicator) {
    return ncclTeam_t{.nRanks = communicator.nranks(), .rank = communicator.rank(), .stride = 1};
  });
}

TUTTI_API(ncclTeam_t, ncclTeamLsa, ncclComm_t comm) {
  return answer("ncclTeamLsa", comm, ncclTeam_t{}, lsaTeam);
}

TUTTI_API(ncclTeam_t, ncclTeamRail, ncclComm_t comm) {
  return answer("ncclTeamRail", comm, ncclTeam_t{}, [](const Communicator& communicator) {
    const int size = ranksPerHost(communicator);
    return ncclTeam_t{
        .nRanks = communicator.nranks() / size, .rank = communicator.rank() / size, .stride = size};
  });
}

TUTTI_API(int, ncclTeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank) {
  return answer("ncclTeamRankToWorld", comm, -1,
                [&](const Communicator& communicator) { return worldRank(communicator, team, rank); });
}

TUTTI_API(int, ncclTeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank) {
  return answer("ncclTeamRankToLsa", comm, -1, [&](const Communicator& communicator) {
    return worldRank(communicator, team, rank) - worldRank(communicator, lsaTeam(communicator), 0);
  });
}

TUTTI_API(int, ncclLLA2ACalcSlots, int maxElts, int maxEltSize) {
  constexpr int kSlotBytes = 8;
  return maxElts * ((maxEltSize + kSlotBytes - 1) / kSlotBytes);
}
