// What the rows of the table of settings are made of: how values are read, and how wrong ones are refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/settings.h"

namespace tutti {

/// Which communicators a variable changes something for, by the memory that they work on.
enum class ActsOn : std::uint8_t { any, gpu, host };

/// A variable that something here acts on.
struct ActingRow : SettingRow {
  void (*apply)(Settings&, const ActingRow&, std::string_view value);
  ActsOn on = ActsOn::any;
};
std::span<const ActingRow> actingRows();

/// Throws Error(ncclInvalidUsage) that names the variable, its value and what is accepted.
[[noreturn]] void refuse(const SettingRow& row, std::string_view value, std::string_view accepted);

/// Decimal, or hexadecimal after 0x.
std::uint64_t wholeNumber(const SettingRow& row, std::string_view value, std::uint64_t low,
                          std::uint64_t high);
inline bool flag(const SettingRow& row, std::string_view value) { return wholeNumber(row, value, 0, 1) == 1; }
std::chrono::milliseconds seconds(const SettingRow& row, std::string_view value);

bool equalIgnoringCase(std::string_view a, std::string_view b);
/// The place of `value` among `names`, whatever the case; names.size() where it is none of them.
std::size_t placeOf(std::string_view value, std::span<const std::string_view> names);
/// The same, but refuses what is none of them.
std::size_t oneOf(const SettingRow& row, std::string_view value, std::span<const std::string_view> names);
/// Without spaces, tabs and carriage returns around it.
std::string_view trimmed(std::string_view text);
/// The parts between separators, without spaces around them; nothing for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The values of rows with a grammar of their own (plan_settings.cc, log_settings.cc, topology_settings.cc).
void readAlgorithms(Settings& settings, const ActingRow& row, std::string_view value);
void readProtocols(Settings& settings, const ActingRow& row, std::string_view value);
void readPlan(Settings& settings, const ActingRow& row, std::string_view value);
void readLogLevel(Settings& settings, const ActingRow& row, std::string_view value);
void readLogSubsystems(Settings& settings, const ActingRow& row, std::string_view value);
void readTimestampLevels(Settings& settings, const ActingRow& row, std::string_view value);
void readPeerLevel(Settings& settings, const ActingRow& row, std::string_view value);
void readRdmaLevel(Settings& settings, const ActingRow& row, std::string_view value);
void readCrossNic(Settings& settings, const ActingRow& row, std::string_view value);
void readLeastChannels(Settings& settings, const ActingRow& row, std::string_view value);
void readMostChannels(Settings& settings, const ActingRow& row, std::string_view value);

/// NCCL's variables that nothing here acts on.
struct IdleRow : SettingRow {
  bool is_number = false;  ///< else any text
};
std::span<const IdleRow> idleRows();
void requireForm(const IdleRow& row, std::string_view value);

}  // namespace tutti
