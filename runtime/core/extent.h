// How much memory a collective's buffers are.
#pragma once

#include <cstdint>

#include "runtime/core/descriptor.h"

namespace tutti {

/// Blocks of descriptor.count elements in each buffer of a rank.
struct Extent {
  std::uint64_t send_blocks = 1;
  std::uint64_t recv_blocks = 1;
};

constexpr Extent extentOf(Collective collective, int nranks) {
  const auto all = static_cast<std::uint64_t>(nranks);
  if (collective == Collective::reduce_scatter) return {all, 1};
  if (collective == Collective::all_gather) return {1, all};
  return {1, 1};
}

}  // namespace tutti
