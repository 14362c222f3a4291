// Lines as NCCL writes them, so that tools made for its logs understand them.
#include "runtime/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"

namespace tutti {
namespace {

std::vector<std::string> linesOf(const test::ScratchDirectory& directory, const std::string& name) {
  std::vector<std::string> lines;
  std::ifstream text(directory.path() + "/" + name);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

void expectMatches(const std::string& line, const char* pattern) {
  EXPECT_TRUE(std::regex_match(line, std::regex(pattern))) << line;
}

TEST(Log, LinesHaveTheFormOfNccl) {
  const test::ScratchDirectory directory;
  Log log({.level = LogLevel::trace,
           .file = directory.path() + "/log",
           .timestamp_levels = bit(LogLevel::warn),
           .timestamp_format = "[%F_%T] "});
  log.write(LogLevel::version, 0, "NCCL version 2.28.9");
  log.write(LogLevel::info, {2, 5}, "joined");
  log.write(LogLevel::warn, -1, "wrong");
  log.write(LogLevel::trace, {0, -1}, "seen");
  const auto lines = linesOf(directory, "log");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0], "NCCL version 2.28.9");
  std::string self = std::to_string(::getpid());
  self.insert(0, 1, ':').push_back(':');
  expectMatches(lines[1], R"(\S+:\d+:\d+ \[5\] NCCL INFO rank 2: joined)");
  EXPECT_NE(lines[1].find(self), std::string::npos);
  expectMatches(lines[2],
                R"(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \S+:\d+:\d+ \[0\] log_test\.cc:\d+ NCCL WARN wrong)");
  expectMatches(lines[3], R"(\S+:\d+:\d+ \[0\] NCCL TRACE rank 0: seen)");
}

TEST(Log, LevelsAndSubsystemsChoose) {
  const auto shown = [](LogLevel set, std::uint32_t subsystems, LogLevel level, LogSubsystem subsystem) {
    return Log({.level = set, .subsystems = subsystems, .file = {}, .timestamp_format = {}})
        .shows(level, subsystem);
  };
  const std::uint32_t net = bit(LogSubsystem::net);
  EXPECT_TRUE(shown(LogLevel::info, net, LogLevel::info, LogSubsystem::net));
  EXPECT_FALSE(shown(LogLevel::info, net, LogLevel::info, LogSubsystem::init));
  EXPECT_TRUE(
      shown(LogLevel::info, net, LogLevel::warn, LogSubsystem::init));  // warnings are about everything
  EXPECT_FALSE(shown(LogLevel::warn, ~0U, LogLevel::info, LogSubsystem::init));
  EXPECT_TRUE(shown(LogLevel::abort, ~0U, LogLevel::info, LogSubsystem::init));
  EXPECT_FALSE(shown(LogLevel::abort, ~0U, LogLevel::trace, LogSubsystem::init));
  EXPECT_FALSE(shown(LogLevel::none, ~0U, LogLevel::version, LogSubsystem::init));
}

TEST(Log, FilesAreNamedByHostAndProcess) {
  const test::ScratchDirectory directory;
  Log log({.level = LogLevel::warn, .file = directory.path() + "/%p.%%.%x", .timestamp_format = {}});
  log.write(LogLevel::warn, 1, "here");
  EXPECT_EQ(linesOf(directory, std::to_string(::getpid()) + ".%.%x").size(), 1U);
}

TEST(Log, TimesMayHavePartsOfASecond) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  EXPECT_EQ(timestamp("[%F %T] ", 86400, 0), "[1970-01-02 00:00:00] ");
  EXPECT_EQ(timestamp("%T.%3f_%%3f|", 3661, 12'345'678), "01:01:01.012 %3f|");
  EXPECT_EQ(timestamp("%9f", 0, 7), "000000007");
  EXPECT_EQ(timestamp("%", 0, 0), "%");
  EXPECT_EQ(timestamp("", 0, 0), "");
}

}  // namespace
}  // namespace tutti
