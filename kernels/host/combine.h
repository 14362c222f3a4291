// combine on the host: the arithmetic of every reduction, one pass over memory.
//
// Defined once, for every executor (source: the design's "Arithmetic"):
//   integers    wrap; avg sums, then the last call divides by n, truncating towards zero
//   floats      each combine accumulates all its sources in the order given and rounds once, to nearest even:
//               double in double; float, float16, bfloat16 and both float8 in float. float8 saturates to the
//               largest finite value (infinity too), as CUDA's conversions with __NV_SATFINITE do
//   min, max    ignore a NaN when the other side is a number; -0 < +0
//   premul_sum  an own contribution is multiplied by its scale when it is loaded, then added
//   avg         of floating-point types: premul_sum with 1/n (in float; double for double)
//   NaN         a NaN that was computed is stored as the type's canonical NaN: sign clear, other bits set
//   copy        one source that is not scaled or divided keeps its bits
// The bits are the same for every instruction set. They hold in the default floating-point environment: see
// float_environment.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/core/scale.h"
#include "runtime/core/types.h"

namespace tutti {

/// One call of combine with its addresses resolved. No alignment is required. A destination may be the same
/// address as a source, but must not overlap one otherwise; destinations do not overlap each other.
struct CombineArgs {
  std::byte* const* dsts = nullptr;
  const std::byte* const* srcs = nullptr;
  std::uint32_t dst_count = 0;    ///< 1 to kMaxCombineOperands
  std::uint32_t src_count = 0;    ///< 1 to kMaxCombineOperands
  std::uint64_t n = 0;            ///< elements
  std::uint64_t own = 0;          ///< bit i: source i is an own contribution
  const Scale* scales = nullptr;  ///< one per source, read where `own` is set by operations that scale; for
                                  ///< avg nullptr means averageScale(type, nranks)
  std::uint64_t stream = 0;       ///< bit d, below dst_count: destination d is written with streaming stores
  std::int32_t nranks = 1;        ///< the n of avg, 1 to kMaxRanks
  bool last = false;              ///< this call completes the reduction
};

/// Most operands on either side of one call.
inline constexpr std::uint32_t kMaxCombineOperands = 64;

using CombineFn = void (*)(const CombineArgs&);

/// The function for a type and an operation, for the best instruction set that the CPU has. Never nullptr.
CombineFn combineFunction(DataType type, RedOp op);

/// Whether the call surely moves bytes without arithmetic, so that copyCombine serves.
bool isCopy(const CombineArgs& args, RedOp op);

/// One source, its bytes copied to all destinations. `element_bytes` is the size of the type.
void copyCombine(const CombineArgs& args, std::size_t element_bytes);

/// Orders streaming stores of this thread before its later stores. Whoever publishes streamed data by a
/// release store calls this first: release alone does not order streaming stores. combine itself does not
/// fence.
void streamingFence();

}  // namespace tutti
