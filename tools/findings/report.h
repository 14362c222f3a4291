// Findings, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/findings/finding.h"

namespace tutti {

/// ok for no findings.
Level worst(const Findings& findings);

/// Of the program: 0 where nothing is wrong, 1 with warnings, 2 with failures.
int exitStatus(const Findings& findings);

/// By area, in the order in which areas first appear; at the end how many there are of each level, and again
/// those that want something done. Ends with a newline.
std::string toText(const std::string& title, const Findings& findings);

/// The document that README.md describes. `kind`: "host" or "peer".
nlohmann::ordered_json toJson(const std::string& host, const std::string& kind, const Findings& findings);

}  // namespace tutti
