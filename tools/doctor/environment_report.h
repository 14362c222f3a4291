// tutti-doctor --env: every variable that Tutti knows, its value, where that comes from, what it does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/environment.h"

namespace tutti::doctor {

struct VariableReport {
  std::string name;
  std::string value;
  std::string origin;  ///< "default", "environment", "/etc/nccl.conf line 3"
  bool acts = true;
  std::string remark = {};  ///< why it does not act, or is refused
  bool is_refused = false;
};

/// The table's rows in order, then the unknown names that are set.
std::vector<VariableReport> reportEnvironment(const Environment& environment);

std::string toText(const std::vector<VariableReport>& reports);
nlohmann::ordered_json toJson(const std::vector<VariableReport>& reports);

}  // namespace tutti::doctor
