// What of a machine costs bandwidth, or looks like a mistake.
#pragma once

#include <string>
#include <vector>

#include "tools/findings/finding.h"
#include "tools/topo/machine.h"

namespace tutti::topo {

/// Warnings and notes; ok lines say what was looked at. `remarks`: what of the inputs was not understood.
Findings checkMachine(const Machine& machine, const std::vector<std::string>& remarks);

}  // namespace tutti::topo
