// Message sizes: reading them, stepping through them, fitting them into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::perf {

/// Bytes of a text such as "0", "64", "1.5M": a decimal number, with a binary multiple K, M, G or T (either
/// case). Fractions of a byte are dropped. Throws std::invalid_argument, saying why, for anything else.
std::size_t parseSize(const std::string& text);

/// From `min` to `max`, both included when hit.
struct SizeRange {
  std::size_t min = std::size_t{32} << 20;
  std::size_t max = std::size_t{32} << 20;
  std::size_t step = std::size_t{1} << 20;  ///< added each time, unless a factor is set
  std::size_t factor = 1;                   ///< multiplies each time; 1 = not set
};

/// All sizes of the range, ascending. A factor cannot leave 0, so the size after 0 is 8. Throws
/// std::invalid_argument when min > max or when the step never reaches max.
std::vector<std::size_t> sizesOf(const SizeRange& range);

/// Largest message for which `buffers` buffers on each of `local_ranks` ranks fit into three quarters of
/// `free_bytes`; the last quarter is for the library and everybody else.
std::size_t largestMessage(std::uint64_t free_bytes, int buffers, int local_ranks);

}  // namespace tutti::perf
