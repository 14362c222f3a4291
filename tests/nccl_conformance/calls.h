// A collective as a value, and what it must do: plain loops in double over small whole numbers, chosen so
// that no order of reduction rounds in any type.
#pragma once

#include <nccl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/nccl_conformance/numbers.h"

namespace conformance {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  bcast,
  all_to_all,
  gather,
  scatter,
};

inline constexpr const char* kCollectiveNames[] = {"AllReduce", "Reduce",    "ReduceScatter",
                                                   "AllGather", "Broadcast", "Bcast",
                                                   "AlltoAll",  "Gather",    "Scatter"};
inline constexpr const char* kOpNames[] = {"sum", "prod", "max", "min", "avg", "premulsum"};
/// In Call::op: an operation of ncclRedOpCreatePreMulSum.
inline constexpr int kPreMulSum = ncclNumOps;

struct Call {
  Collective collective = Collective::all_reduce;
  const Type* type = &kTypes[0];
  int op = ncclSum;  ///< of ncclRedOp_t, or kPreMulSum
  int root = 0;
  std::size_t count = 0;
  bool in_place = false;

  bool reduces() const { return collective <= Collective::reduce_scatter; }
  bool hasRoot() const {
    return collective == Collective::reduce || collective == Collective::broadcast ||
           collective == Collective::bcast || collective == Collective::gather ||
           collective == Collective::scatter;
  }
  /// Elements that `rank` contributes, and those that it ends with.
  std::size_t sent(int rank, int nranks) const {
    if (collective == Collective::reduce_scatter || collective == Collective::all_to_all)
      return count * static_cast<std::size_t>(nranks);
    if (collective == Collective::scatter) return rank == root ? count * static_cast<std::size_t>(nranks) : 0;
    const bool is_broadcast = collective == Collective::broadcast || collective == Collective::bcast;
    return is_broadcast && rank != root ? 0 : count;
  }
  std::size_t received(int rank, int nranks) const {
    if (collective == Collective::all_gather || collective == Collective::all_to_all)
      return count * static_cast<std::size_t>(nranks);
    if (collective == Collective::gather) return rank == root ? count * static_cast<std::size_t>(nranks) : 0;
    return collective == Collective::reduce && rank != root ? 0 : count;
  }
  std::string text() const {
    std::string result = kCollectiveNames[static_cast<int>(collective)];
    result += std::string(" ") + type->name + " x" + std::to_string(count);
    if (reduces()) result += std::string(" ") + kOpNames[op];
    if (hasRoot()) result += " root " + std::to_string(root);
    return result + (in_place ? " in place" : "");
  }
};

/// Issues it; `op` is what call.op stands for. Type and operation may be wrong on purpose, as a C program's.
[[gnu::no_sanitize("enum")]] inline ncclResult_t issue(const Call& call, ncclRedOp_t op, const void* send,
                                                       void* recv, ncclComm_t comm, cudaStream_t stream) {
  const ncclDataType_t type = call.type->type;
  switch (call.collective) {
    case Collective::all_reduce:
      return ncclAllReduce(send, recv, call.count, type, op, comm, stream);
    case Collective::reduce:
      return ncclReduce(send, recv, call.count, type, op, call.root, comm, stream);
    case Collective::reduce_scatter:
      return ncclReduceScatter(send, recv, call.count, type, op, comm, stream);
    case Collective::all_gather:
      return ncclAllGather(send, recv, call.count, type, comm, stream);
    case Collective::broadcast:
      return ncclBroadcast(send, recv, call.count, type, call.root, comm, stream);
    case Collective::bcast:
      return ncclBcast(recv, call.count, type, call.root, comm, stream);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    case Collective::all_to_all:
      return ncclAlltoAll(send, recv, call.count, type, comm, stream);
    case Collective::gather:
      return ncclGather(send, recv, call.count, type, call.root, comm, stream);
    case Collective::scatter:
      return ncclScatter(send, recv, call.count, type, call.root, comm, stream);
#endif
    default:
      return ncclInvalidUsage;
  }
}

/// What kPreMulSum multiplies a rank's contribution by.
inline double scalarOf(int rank) { return 1 + rank % 2; }

/// Element i of a rank's contribution. Sums of 8 ranks stay within 16 in e4m3 and 6 in e5m2, products in 16.
inline double inputValue(const Call& call, std::uint64_t seed, int rank, std::size_t i) {
  std::uint64_t x =
      seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9ULL + i;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  if (call.op == ncclProd) {
    const double magnitude = rank % 2 == 0 ? 1 + static_cast<double>(x % 2) : 1;
    return call.type->is_signed && (x & 2) != 0 ? -magnitude : magnitude;
  }
  if (call.reduces() && call.type->type == ncclFloat8e5m2 && rank >= 4) return 0;
  const std::uint64_t most = call.type->bytes == 1 && call.type->isFloat() ? 1 : 3;
  if (!call.type->is_signed) return static_cast<double>(x % (most + 1));
  return static_cast<double>(x % (2 * most + 1)) - static_cast<double>(most);
}

/// Element i reduced over all ranks.
inline double reducedValue(const Call& call, std::uint64_t seed, int nranks, std::size_t i) {
  double result = 0;
  for (int rank = 0; rank < nranks; ++rank) {
    const double value = inputValue(call, seed, rank, i) * (call.op == kPreMulSum ? scalarOf(rank) : 1);
    if (rank == 0) {
      result = value;
    } else if (call.op == ncclMax) {
      result = std::max(result, value);
    } else if (call.op == ncclMin) {
      result = std::min(result, value);
    } else {
      result = call.op == ncclProd ? result * value : result + value;
    }
  }
  if (call.op != ncclAvg) return result;
  return call.type->isFloat() ? result / nranks : std::trunc(result / nranks);
}

/// Element i of what `rank` ends with.
inline double expectedValue(const Call& call, std::uint64_t seed, int rank, int nranks, std::size_t i) {
  const auto at = static_cast<std::size_t>(rank) * call.count + i;
  switch (call.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return reducedValue(call, seed, nranks, i);
    case Collective::reduce_scatter:
      return reducedValue(call, seed, nranks, at);
    case Collective::all_gather:
    case Collective::gather:
      return inputValue(call, seed, static_cast<int>(i / call.count), i % call.count);
    case Collective::all_to_all:
      return inputValue(call, seed, static_cast<int>(i / call.count),
                        static_cast<std::size_t>(rank) * call.count + i % call.count);
    case Collective::scatter:
      return inputValue(call, seed, call.root, at);
    default:
      return inputValue(call, seed, call.root, i);
  }
}

/// How far a result may be off: whole numbers are exact; a floating-point avg multiplies by 1/n, which is
/// rounded unless n is a power of two, and rounds once per rank.
inline double tolerance(const Call& call, int nranks) {
  if (!call.reduces() || call.op != ncclAvg || !call.type->isFloat()) return 0;
  if ((nranks & (nranks - 1)) == 0) return 0;
  const double largest_input = call.type->bytes == 1 ? 1 : 3;
  return (nranks + 1) * largest_input * std::ldexp(1, -1 - call.type->mantissa_bits);
}

}  // namespace conformance
