#include "bench/sizes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <system_error>

namespace tutti::perf {
namespace {

constexpr std::size_t kAfterZero = 8;

int binaryExponent(char suffix) {
  switch (suffix) {
    case 'K':
    case 'k':
      return 10;
    case 'M':
    case 'm':
      return 20;
    case 'G':
    case 'g':
      return 30;
    case 'T':
    case 't':
      return 40;
    default:
      return -1;
  }
}

}  // namespace

std::size_t parseSize(const std::string& text) {
  long double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || !std::isfinite(number)) {
    throw std::invalid_argument("\"" + text + "\" is not a size; write a number, such as 64, 8K, 1.5M or 2G");
  }
  int exponent = 0;
  if (rest != end) {
    exponent = rest + 1 == end ? binaryExponent(*rest) : -1;
    if (exponent < 0) {
      throw std::invalid_argument("\"" + text + "\" does not end in K, M, G or T");
    }
  }
  if (std::signbit(number)) throw std::invalid_argument("\"" + text + "\" is negative");
  const long double bytes = std::ldexp(number, exponent);
  if (bytes > static_cast<long double>(std::numeric_limits<std::int64_t>::max())) {
    throw std::invalid_argument("\"" + text + "\" is too large");
  }
  return static_cast<std::size_t>(bytes);
}

std::vector<std::size_t> sizesOf(const SizeRange& range) {
  if (range.min > range.max) {
    throw std::invalid_argument("the smallest size (-b) is " + std::to_string(range.min) +
                                " bytes, more than the largest (-e), " + std::to_string(range.max));
  }
  if (range.factor == 0) throw std::invalid_argument("the factor between sizes (-f) is 0");
  if (range.factor == 1 && range.step == 0 && range.min < range.max) {
    throw std::invalid_argument("the step between sizes (-i) is 0");
  }
  std::vector<std::size_t> sizes;
  std::size_t size = range.min;
  for (;;) {
    sizes.push_back(size);
    if (range.factor > 1) {
      if (size > range.max / range.factor) break;
      size = size == 0 ? kAfterZero : size * range.factor;
    } else {
      if (range.step > range.max - size || range.step == 0) break;
      size += range.step;
    }
    if (size > range.max) break;
  }
  return sizes;
}

std::size_t largestMessage(std::uint64_t free_bytes, int buffers, int local_ranks) {
  return free_bytes / 4 * 3 / static_cast<std::uint64_t>(buffers) / static_cast<std::uint64_t>(local_ranks);
}

}  // namespace tutti::perf
