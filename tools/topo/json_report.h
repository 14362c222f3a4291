// All there is to know of a machine, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tools/findings/finding.h"
#include "tools/topo/machine.h"

namespace tutti::topo {

/// The document that README.md describes.
nlohmann::ordered_json toJson(const Machine& machine, const Findings& findings);

}  // namespace tutti::topo
