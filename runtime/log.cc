#include "runtime/log.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

namespace tutti {
namespace {

/// Fit for names of files.
std::string hostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string result = name.data();
  std::ranges::replace_if(
      result, [](char c) { return c == '/' || c == '%'; }, '-');
  return result;
}

std::string expanded(const std::string& pattern) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char field = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (field == 'h') {
      result += hostName();
    } else if (field == 'p') {
      result += std::to_string(::getpid());
    } else if (field == '%') {
      result += '%';
    } else {
      result += pattern[i];
      continue;
    }
    ++i;
  }
  return result;
}

std::string now(const std::string& format) {
  std::timespec time{};
  std::timespec_get(&time, TIME_UTC);
  return timestamp(format, time.tv_sec, time.tv_nsec);
}

std::string fileName(SourcePlace place) {
  const std::string_view path = place.file;
  return std::string(path.substr(path.find_last_of('/') + 1));
}

}  // namespace

std::string timestamp(const std::string& format, std::int64_t seconds, std::int64_t nanoseconds) {
  std::string pattern;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      pattern += format[i] == '_' ? ' ' : format[i];
    } else if (format[i + 1] >= '1' && format[i + 1] <= '9' && i + 2 < format.size() &&
               format[i + 2] == 'f') {
      pattern += fmt::format("{:09}", nanoseconds).substr(0, static_cast<std::size_t>(format[i + 1] - '0'));
      i += 2;
    } else {
      pattern += format.substr(i++, 2);
    }
  }
  const std::time_t time = seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  std::array<char, 512> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), pattern.c_str(), &parts);
  return {text.data(), length};
}

Log::Log(LogSettings settings)
    : settings_(std::move(settings)), stream_(stderr), origin_(fmt::format("{}:{}", hostName(), ::getpid())) {
  if (settings_.file.empty() || settings_.level <= LogLevel::version) return;
  const std::string path = expanded(settings_.file);
  if (path == "/dev/stderr") return;
  if (path == "/dev/stdout") {
    stream_ = stdout;  // one buffer with what the program prints
  } else if (std::FILE* opened = std::fopen(path.c_str(), "ae")) {
    stream_ = opened;
  } else {
    write(LogLevel::warn, -1,
          fmt::format("NCCL_DEBUG_FILE: cannot open {} for appending; logging here", path));
  }
}

void Log::warnOnce(LogSource source, const std::string& text, SourcePlace place) {
  {
    const std::scoped_lock lock(mutex_);
    if (!told_once_.insert(text).second) return;
  }
  write(LogLevel::warn, source, text, LogSubsystem::init, place);
}

void Log::write(LogLevel level, LogSource source, std::string_view text, LogSubsystem subsystem,
                SourcePlace place) {
  if (!shows(level, subsystem)) return;
  const bool has_time = (settings_.timestamp_levels & bit(level)) != 0;
  std::string line = has_time ? now(settings_.timestamp_format) : "";
  if (level != LogLevel::version) {
    line += fmt::format("{}:{} [{}] ", origin_, ::syscall(SYS_gettid), std::max(source.device, 0));
    if (level == LogLevel::warn) line += fmt::format("{}:{} ", fileName(place), place.line);
    line += fmt::format("NCCL {} ", name(level));
    if (source.rank >= 0) line += fmt::format("rank {}: ", source.rank);
  }
  line += text;
  line += '\n';
  const std::scoped_lock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

}  // namespace tutti
