// RDMA in a build that was made without rdma-core's headers.
#include "tools/doctor/gather.h"
#include "tools/doctor/rdma_trial.h"

namespace tutti::doctor {

void findUsablePorts(const RdmaSettings&, RdmaFacts& facts) { facts.is_built = false; }

struct RdmaTrials::Ports {};

RdmaTrials::RdmaTrials(const RdmaSettings& settings)
    : settings_(settings), why_none_("this Tutti was built without RDMA (TUTTI_VERBS)") {}
RdmaTrials::~RdmaTrials() = default;
bool RdmaTrials::hasPorts() const { return false; }
void RdmaTrials::run(Conversation&, bool, std::vector<RdmaRail>&) {}

}  // namespace tutti::doctor
