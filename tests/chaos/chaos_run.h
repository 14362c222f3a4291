// Carries out one chaos run and judges it.
#pragma once

#include <string>
#include <vector>

#include "tests/chaos/chaos_plan.h"

namespace tutti::test {

struct ChaosOutcome {
  std::vector<double> error_ms;       ///< per survivor, from the fault to its error
  double longest_end_ms = 0;          ///< of Destroy or Abort
  int wrong_culprits = 0;             ///< errors that do not name the victim
  int most_mappings = 0;              ///< more than before, of one rank
  int leaks = 0;                      ///< ranks that were left with more than they began with
  std::vector<std::string> problems;  ///< whatever is not as it must be, in words
};

ChaosOutcome carryOut(const ChaosPlan& plan);

}  // namespace tutti::test
