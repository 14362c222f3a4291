#include "runtime/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

namespace tutti {
namespace {

std::string hostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string expanded(const std::string& pattern) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool is_field = pattern[i] == '%' && i + 1 < pattern.size();
    if (is_field && pattern[i + 1] == 'h') {
      result += hostName();
    } else if (is_field && pattern[i + 1] == 'p') {
      result += std::to_string(::getpid());
    } else {
      result += pattern[i];
      continue;
    }
    ++i;
  }
  return result;
}

const char* label(LogLevel level) {
  constexpr std::array<const char*, 5> kLabels{"NONE", "VERSION", "WARN", "INFO", "TRACE"};
  return kLabels[static_cast<std::size_t>(level)];
}

}  // namespace

Log::Log(LogLevel level, const std::string& file)
    : level_(level), stream_(stderr), origin_(fmt::format("{}:{}", hostName(), ::getpid())) {
  if (file.empty() || level == LogLevel::none) return;
  const std::string path = expanded(file);
  if (std::FILE* opened = std::fopen(path.c_str(), "ae")) {
    stream_ = opened;
  } else {
    write(LogLevel::warn, -1,
          fmt::format("NCCL_DEBUG_FILE: cannot open {} for appending; logging here", path));
  }
}

void Log::write(LogLevel level, int rank, std::string_view text) {
  if (!shows(level)) return;
  const std::string who = rank >= 0 ? fmt::format("rank {}: ", rank) : "";
  const std::string line = fmt::format("[{}] Tutti {} {}{}\n", origin_, label(level), who, text);
  const std::scoped_lock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

}  // namespace tutti
