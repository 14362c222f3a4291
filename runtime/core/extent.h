// How much memory a collective's buffers are.
#pragma once

#include <cstdint>

#include "runtime/core/descriptor.h"

namespace tutti {

/// Blocks of descriptor.count elements in each buffer of a rank, as far as the buffer is looked at.
struct Extent {
  std::uint64_t send_blocks = 1;
  std::uint64_t recv_blocks = 1;
};

constexpr Extent extentOf(Collective collective, int nranks) {
  const auto all = static_cast<std::uint64_t>(nranks);
  switch (collective) {
    case Collective::reduce_scatter:
    case Collective::scatter:
      return {all, 1};
    case Collective::all_gather:
    case Collective::gather:
      return {1, all};
    case Collective::all_to_all:
      return {all, all};
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce:
      break;
  }
  return {1, 1};
}

}  // namespace tutti
