#include "tools/train/option_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "tools/train/errors.h"

namespace tutti::train {
namespace {

template <class Number>
std::optional<Number> parseWhole(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::size_t countWithin(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) {
    throw UsageError(fmt::format("{} {}: must be {} to {}", name, value, low, high));
  }
  return static_cast<std::size_t>(value);
}

bool choose(const char* name, const std::string& value, const char* first, const char* second) {
  if (value != first && value != second) {
    throw UsageError(fmt::format("{} {}: must be {} or {}", name, value, first, second));
  }
  return value == second;
}

Fault parseFault(const std::string& text, std::size_t steps) {
  const std::string_view whole(text);
  const std::size_t colon = whole.find(':');
  const bool has_colon = colon != std::string_view::npos;
  const auto rank = parseWhole<std::size_t>(whole.substr(0, colon));
  const auto step = parseWhole<std::size_t>(has_colon ? whole.substr(colon + 1) : "");
  if (!rank || !step) {
    throw UsageError(fmt::format("--inject-fault {}: must be RANK:STEP, such as 2:17", text));
  }
  if (*step < 1 || *step > steps) {
    throw UsageError(fmt::format("--inject-fault {}: the step must be 1 to {} (--steps)", text, steps));
  }
  return {*rank, *step};
}

std::uint64_t parseSeed(const std::string& text) {
  const auto seed = parseWhole<std::uint64_t>(text);
  if (!seed) {
    throw UsageError(
        fmt::format("--seed {}: must be 0 to {}", text, std::numeric_limits<std::uint64_t>::max()));
  }
  return *seed;
}

std::uint64_t parseParameters(const std::string& text) {
  // So that 2 (n - 1) times the gradient fits 64 bits.
  constexpr double kMost = 1e13;
  const auto value = parseWhole<double>(text);
  // Written so that NaN is refused.
  if (!value || !(*value >= 1 && *value <= kMost) || *value != std::floor(*value)) {
    throw UsageError(fmt::format("--params {}: must be a whole number of 1 to 1e13, such as 7e9", text));
  }
  return static_cast<std::uint64_t>(*value);
}

std::vector<double> parseLinkGbps(const std::string& text) {
  std::vector<double> speeds;
  std::string_view rest(text);
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const auto value = parseWhole<double>(rest.substr(0, comma));
    if (!value || !(*value > 0 && *value <= 1e6)) {
      throw UsageError(fmt::format(
          "--link-gbps {}: must be speeds in Gbit/s, more than 0 and at most 1e6, such as 100,400", text));
    }
    speeds.push_back(*value);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  return speeds;
}

}  // namespace tutti::train
