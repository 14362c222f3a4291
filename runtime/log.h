// Log lines for people: NCCL_DEBUG chooses which, NCCL_DEBUG_FILE where.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/core/settings.h"

namespace tutti {

/// Thread-safe; every line is written whole. `[host:pid] Tutti WARN rank 2: text`.
class Log {
 public:
  Log(LogLevel level, const std::string& file);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool shows(LogLevel level) const { return level <= level_; }
  /// `rank` < 0: the line concerns the process.
  void write(LogLevel level, int rank, std::string_view text);

 private:
  LogLevel level_;
  std::FILE* stream_;  ///< never closed: lines may come until the process ends
  std::string origin_;
  std::mutex mutex_;
};

}  // namespace tutti
