// One checked operation, as values.
#pragma once

#include <cstdint>
#include <optional>

#include "nccl.h"

namespace tutti::perf {

/// The reduction that nccl-tests calls mulsum: rank r multiplies its input by scalarOf(r), then all are
/// summed. The value names it among the built-in operations; the calls get what ncclRedOpCreatePreMulSum
/// returns.
inline constexpr auto kMulSum = static_cast<ncclRedOp_t>(ncclNumOps);

/// 1 or 2 by parity, as in nccl-tests.
constexpr int scalarOf(int rank) { return 1 + rank % 2; }
constexpr int sumOfScalars(int nranks) { return nranks + nranks / 2; }

/// Operations that pick one of their operands.
constexpr bool picks(ncclRedOp_t op) { return op == ncclMax || op == ncclMin; }

/// One set of inputs. `reduction` is empty when data is only moved.
struct Problem {
  ncclDataType_t type;
  std::optional<ncclRedOp_t> reduction;
  int nranks;
  std::uint64_t repetition;
};

}  // namespace tutti::perf
