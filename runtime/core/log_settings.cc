#include "runtime/core/log_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

constexpr std::array<std::string_view, 6> kLevels{"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
constexpr std::array<std::string_view, 19> kSubsystems{
    "INIT", "COLL",  "P2P",  "SHM",       "NET", "GRAPH",   "TUNING", "ENV",     "ALLOC", "ALLOC_HOST",
    "CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS",    "DESTROY", "ALL"};
constexpr std::array<std::string_view, 6> kTimestampLevels{"VERSION", "WARN",  "INFO",
                                                           "ABORT",   "TRACE", "ALL"};

/// Bits by place in `names`, of which the last is ALL; ^ before the list excludes.
std::uint32_t bitList(const SettingRow& row, std::string_view value,
                      std::span<const std::string_view> names) {
  const bool excludes = value.starts_with('^');
  std::uint32_t bits = 0;
  for (const std::string_view part : split(excludes ? value.substr(1) : value, ',')) {
    const std::size_t at = placeOf(part, names);
    if (at == names.size()) {
      refuse(
          row, value,
          fmt::format("names among {}, with commas between, or ^ before them for all others; \"{}\" is none",
                      fmt::join(names, ", "), part));
    }
    bits |= at + 1 == names.size() ? ~0U : 1U << at;
  }
  return excludes ? ~bits : bits;
}

}  // namespace

void readLogLevel(Settings& settings, const ActingRow& row, std::string_view value) {
  settings.log.level = static_cast<LogLevel>(oneOf(row, value, kLevels));
}

void readLogSubsystems(Settings& settings, const ActingRow& row, std::string_view value) {
  settings.log.subsystems = bitList(row, value, kSubsystems);
}

void readTimestampLevels(Settings& settings, const ActingRow& row, std::string_view value) {
  settings.log.timestamp_levels = bitList(row, value, kTimestampLevels)
                                  << 1;  // there is no line of level NONE
}

}  // namespace tutti
