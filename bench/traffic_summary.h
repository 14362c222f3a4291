// NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY=1: what each rank of an all-to-all with uneven blocks moved, and how
// fast.
#pragma once

#include <string>

#include "bench/case.h"
#include "bench/collective.h"

namespace tutti::perf {

/// Whether the environment asks for it, and the collective has such blocks.
bool wantsTrafficSummary(const Collective& collective);

/// Comment lines, in nccl-tests' form: one for each rank.
std::string trafficSummary(const Collective& collective, const Case& item, int nranks, double time_us);

}  // namespace tutti::perf
