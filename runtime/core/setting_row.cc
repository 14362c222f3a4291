#include "runtime/core/setting_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::uint64_t kMaxSeconds = 10ULL * 365 * 24 * 3600;

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

void refuse(const SettingRow& row, std::string_view value, std::string_view accepted) {
  throw Error(ncclInvalidUsage,
              fmt::format("{}=\"{}\": expected {}. Unset it for the default{}{}.", row.name, value, accepted,
                          row.default_value.empty() ? "" : ", ", row.default_value));
}

std::uint64_t wholeNumber(const SettingRow& row, std::string_view value, std::uint64_t low,
                          std::uint64_t high) {
  const bool is_hex = value.starts_with("0x") || value.starts_with("0X");
  const std::string_view digits = is_hex ? value.substr(2) : value;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, is_hex ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < low || number > high) {
    refuse(row, value, fmt::format("a whole number from {} to {}", low, high));
  }
  return number;
}

std::chrono::milliseconds seconds(const SettingRow& row, std::string_view value) {
  // std::from_chars for double would also take "inf" and "nan"; the comparison below refuses both.
  double number = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || !(number >= 0) ||
      number > static_cast<double>(kMaxSeconds)) {
    refuse(row, value, "a number of seconds, 0 or more");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * 1000));
}

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

std::size_t placeOf(std::string_view value, std::span<const std::string_view> names) {
  const auto found =
      std::ranges::find_if(names, [value](std::string_view name) { return equalIgnoringCase(name, value); });
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t oneOf(const SettingRow& row, std::string_view value, std::span<const std::string_view> names) {
  const std::size_t place = placeOf(value, names);
  if (place == names.size()) refuse(row, value, fmt::format("one of {}", fmt::join(names, ", ")));
  return place;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (trimmed(text).empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

}  // namespace tutti
