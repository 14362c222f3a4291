// combine on the host: the arithmetic of every reduction, one pass over memory.
//
// Defined once, for every executor (source: the design's "Arithmetic"):
//   integers   wrap; avg sums, then divides by n, truncating towards zero
//   float      each combine accumulates in float (double for double) and rounds once, to nearest even
//   bfloat16   accumulates in float and rounds once per combine
//   max        ignores a NaN when the other side is a number; -0 < +0
//   avg        an own contribution is multiplied by 1/n (in float; double for double) when it is loaded
//   NaN        a NaN that was computed is stored as the type's canonical NaN; a copy keeps its bits
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/types.h"

namespace tutti {

/// One call of combine with its addresses resolved. No alignment is required. A destination may be the same
/// address as a source, but must not overlap one otherwise.
struct CombineArgs {
  std::byte* const* dsts = nullptr;
  const std::byte* const* srcs = nullptr;
  std::uint32_t dst_count = 0;  ///< at least 1
  std::uint32_t src_count = 0;  ///< at least 1
  std::uint64_t n = 0;          ///< elements
  std::uint64_t own = 0;        ///< bit i: source i is an own contribution
  std::int32_t nranks = 1;      ///< the n of avg
  bool last = false;            ///< this call completes the reduction
};

/// Most operands on either side of one call.
inline constexpr std::uint32_t kMaxCombineOperands = 64;

using CombineFn = void (*)(const CombineArgs&);

/// The function for a type and an operation, or nullptr when this version has none.
CombineFn combineFunction(DataType type, RedOp op);

/// Whether the call moves bytes without arithmetic, so that copyCombine serves.
bool isCopy(const CombineArgs& args, RedOp op);

/// One source, its bytes copied to all destinations. `element_bytes` is the size of the type.
void copyCombine(const CombineArgs& args, std::size_t element_bytes);

}  // namespace tutti
