// Inside of combine: the same loops, compiled once per instruction set, and what they share.
//
// A source that is compiled for an instruction set must not emit any function that the linker could take for
// one of the rest of the program: what it includes keeps all code in an unnamed namespace, and only its table
// is visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/host/combine.h"

namespace tutti {

/// The functions of one instruction set, by type and operation.
struct CombineTable {
  CombineFn functions[kDataTypeCount][kAllRedOpCount];
};

extern const CombineTable kCombinePortable;  ///< what the compiler's target has at least: SSE2 on x86-64
extern const CombineTable kCombineAvx2;      ///< AVX2 and F16C
extern const CombineTable kCombineAvx512;    ///< AVX-512 F, BW, DQ and VL

struct CombinePath {
  std::string_view name;
  const CombineTable* table;
};

/// The paths that this CPU can run, the best one first. Tests force each of them.
std::span<const CombinePath> combinePaths();

/// What an operation that scales multiplies each source by: 1 where it is not an own contribution.
void resolveScales(const CombineArgs& args, DataType type, Scale* scales);

/// Calls `combine` so that the destinations to be streamed are aligned for that; what cannot be is stored
/// normally.
void combineStreaming(const CombineArgs& args, std::size_t element_bytes, CombineFn combine);

/// A sum that is divided by nranks before it is stored.
struct DividingCombine {
  std::size_t element_bytes;
  CombineFn sum;
  void (*divide)(std::byte* values, std::uint64_t n, std::int32_t divisor);  ///< in place
};
void combineDividing(const CombineArgs& args, const DividingCombine& how);

}  // namespace tutti
