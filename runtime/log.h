// Log lines for people and their tools: NCCL_DEBUG chooses which, NCCL_DEBUG_FILE where, in NCCL's format.
#pragma once

#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "runtime/core/log_settings.h"

namespace tutti {

/// Whom a line concerns.
struct LogSource {
  /*implicit*/ LogSource(int of_rank, int its_device = -1) : rank(of_rank), device(its_device) {}

  int rank;    ///< below 0: the process
  int device;  ///< the rank's GPU; below 0: none, which NCCL writes as 0
};

/// A line of the source. std::source_location, which clang-tidy of Debian 12 does not know.
struct SourcePlace {
  const char* file;
  int line;

  /// As a default argument: of the caller.
  static constexpr SourcePlace here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Thread-safe; every line is written whole.
///   HOST:PID:TID [DEVICE] NCCL INFO rank 2: text
///   [2026-01-31 10:20:30] HOST:PID:TID [DEVICE] FILE:LINE NCCL WARN rank 2: text
///   NCCL version 2.28.9 (Tutti 0.1.0)
class Log {
 public:
  explicit Log(LogSettings settings);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool shows(LogLevel level, LogSubsystem subsystem = LogSubsystem::init) const {
    return level <= settings_.level &&
           (level <= LogLevel::warn || (settings_.subsystems & bit(subsystem)) != 0);
  }
  void write(LogLevel level, LogSource source, std::string_view text,
             LogSubsystem subsystem = LogSubsystem::init, SourcePlace place = SourcePlace::here());
  /// A warning that holds for the process, however many communicators come upon it.
  void warnOnce(LogSource source, const std::string& text, SourcePlace place = SourcePlace::here());

 private:
  LogSettings settings_;
  std::FILE* stream_;  ///< never closed: lines may come until the process ends
  std::string origin_;
  std::mutex mutex_;
  std::set<std::string> told_once_;
};

/// The time as NCCL_DEBUG_TIMESTAMP_FORMAT writes it, in the local zone.
std::string timestamp(const std::string& format, std::int64_t seconds, std::int64_t nanoseconds);

}  // namespace tutti
