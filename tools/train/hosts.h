// On how many hosts the ranks are.
#pragma once

#include <cstddef>

#include "tools/train/world.h"

namespace tutti::train {

/// Counts the ranks' names of their hosts as the library tells hosts apart: NCCL_HOSTID, or where that is not
/// set, the boot id of the kernel. Collective.
std::size_t countHosts(World& world);

}  // namespace tutti::train
