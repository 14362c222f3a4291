// One row of the table, as a question.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/options.h"

namespace tutti::perf {

/// The same on all ranks.
struct Case {
  ncclDataType_t type;
  std::optional<ncclRedOp_t> op;
  int root;  ///< -1 where there is none
  std::size_t element_bytes;
  std::size_t count;        ///< the call's count argument
  std::size_t asked_bytes;  ///< of which the layout of each rank follows
  std::size_t span_bytes;   ///< the larger of what a rank sends and receives

  /// Such as "size 4096 float sum in-place".
  std::string describe(bool in_place) const;
};

/// The rows of one cycle, in order.
std::vector<Case> casesOf(const Options& options, const Collective& collective, int nranks);

}  // namespace tutti::perf
