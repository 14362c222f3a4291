// RDMA in a build that was made without rdma-core's headers.
#include "tools/doctor/host/gather.h"
#include "tools/doctor/peer/rdma_trial.h"

namespace tutti::doctor {

void findUsablePorts(const RdmaSettings&, RdmaFacts& facts) { facts.is_built = false; }

struct RdmaTrials::Ports {};

RdmaTrials::RdmaTrials(const Settings& settings)
    : settings_(settings.rdma), why_none_("this Tutti was built without RDMA (TUTTI_VERBS)") {}
RdmaTrials::~RdmaTrials() = default;
bool RdmaTrials::hasPorts() const { return false; }
void RdmaTrials::run(Conversation&, bool, std::vector<RdmaRail>&) {}

}  // namespace tutti::doctor
