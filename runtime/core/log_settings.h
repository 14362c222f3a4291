// What is logged and where: NCCL_DEBUG and its relatives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

enum class LogLevel : std::uint8_t { none, version, warn, info, abort, trace };

constexpr std::string_view name(LogLevel level) {
  constexpr std::string_view kNames[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
  return kNames[static_cast<int>(level)];
}

/// What a line is about; those of warn and version are about everything.
enum class LogSubsystem : std::uint8_t {
  init,
  coll,
  p2p,
  shm,
  net,
  graph,
  tuning,
  env,
  alloc,
  alloc_host,
  call,
  proxy,
  nvls,
  bootstrap,
  reg,
  profile,
  ras,
  destroy,
};

constexpr std::uint32_t bit(LogSubsystem subsystem) { return 1U << static_cast<unsigned>(subsystem); }
constexpr std::uint32_t bit(LogLevel level) { return 1U << static_cast<unsigned>(level); }

struct LogSettings {
  LogLevel level = LogLevel::none;
  std::uint32_t subsystems = ~0U;      ///< bits of those whose info and trace lines are written
  std::string file;                    ///< a pattern; empty: standard error
  std::uint32_t timestamp_levels = 0;  ///< bits of levels whose lines open with the time
  std::string timestamp_format;        ///< strftime's, and %1f to %9f for parts of a second
};

}  // namespace tutti
