// The vocabulary of an operation: data types, reductions, collectives. Values equal those of nccl.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti {

enum class DataType : std::uint8_t {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
  float8e4m3 = 10,
  float8e5m2 = 11,
};
inline constexpr int kDataTypeCount = 12;

/// The first five are built in; premul_sum multiplies each rank's contribution by a scalar of the user first.
enum class RedOp : std::uint8_t { sum = 0, prod = 1, max = 2, min = 3, avg = 4, premul_sum = 5 };
inline constexpr int kRedOpCount = 5;     ///< the built-in ones, as ncclNumOps
inline constexpr int kAllRedOpCount = 6;  ///< what a descriptor may hold

enum class Collective : std::uint8_t {
  all_reduce = 0,
  reduce_scatter = 1,
  all_gather = 2,
  broadcast = 3,
  reduce = 4,
  all_to_all = 5,
  gather = 6,
  scatter = 7
};
inline constexpr int kCollectiveCount = 8;

/// Most ranks that one communicator may have.
inline constexpr int kMaxRanks = 1024;

/// Most ranks of programs in which every rank sends to every other.
inline constexpr int kMaxMeshRanks = 64;

constexpr std::size_t sizeOf(DataType type) {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8e4m3:
    case DataType::float8e5m2:
      return 1;
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32:
      return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
      return 8;
  }
  return 1;
}

constexpr bool isFloatingPoint(DataType type) { return static_cast<int>(type) >= 6; }

constexpr bool isSigned(DataType type) {
  return type == DataType::int8 || type == DataType::int32 || type == DataType::int64 ||
         isFloatingPoint(type);
}

constexpr bool isReduction(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

constexpr bool hasRoot(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

/// Every pair that exchanges has data of its own: no rank has a use for what it could pass on.
constexpr bool isPersonalized(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::gather ||
         collective == Collective::scatter;
}

/// Whether a rank's sendbuff is looked at.
constexpr bool readsInput(Collective collective, bool is_root) {
  return is_root || (collective != Collective::broadcast && collective != Collective::scatter);
}

/// Whether a rank's recvbuff is.
constexpr bool writesOutput(Collective collective, bool is_root) {
  return is_root || (collective != Collective::reduce && collective != Collective::gather);
}

/// In place, peers may still read block p of an all-to-all when the block that came from p is written there:
/// blocks must leave as bytes, never by reference.
constexpr bool mayReferInPlace(Collective collective) { return collective != Collective::all_to_all; }

constexpr std::string_view name(DataType type) {
  constexpr std::string_view kNames[kDataTypeCount] = {"int8",   "uint8",    "int32",  "uint32",
                                                       "int64",  "uint64",   "half",   "float",
                                                       "double", "bfloat16", "f8e4m3", "f8e5m2"};
  return kNames[static_cast<int>(type)];
}

constexpr std::string_view name(RedOp op) {
  constexpr std::string_view kNames[kAllRedOpCount] = {"sum", "prod", "max", "min", "avg", "mulsum"};
  return kNames[static_cast<int>(op)];
}

constexpr std::string_view name(Collective collective) {
  constexpr std::string_view kNames[kCollectiveCount] = {
      "AllReduce", "ReduceScatter", "AllGather", "Broadcast", "Reduce", "AlltoAll", "Gather", "Scatter"};
  return kNames[static_cast<int>(collective)];
}

}  // namespace tutti
