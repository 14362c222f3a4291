// When a rank begins: not before the launcher watches for its end.
#include "tools/run/rank_process.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tools/run/find_program.h"

namespace tutti::run {
namespace {

/// The program of the process that a descriptor stands for.
std::string programOf(int pid_fd) {
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(pid_fd));
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("Pid:")) continue;
    const std::string pid = std::to_string(std::stoi(line.substr(4)));
    return std::filesystem::read_symlink("/proc/" + pid + "/exe").string();
  }
  return {};
}

LaunchPlan planOf(const std::string& program) {
  return {.path = program, .arguments = {program, "-c", "exit 3"}, .hosts = {}, .id_file = {}, .cores = {}};
}

TEST(RankProcess, NoProgramRunsBeforeItsEndIsWatched) {
  const std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  const ProcessSetup setup;
  std::string seen;
  const RankProcess process(planOf("/bin/sh"), setup, 0, [&](int pid_fd) { seen = programOf(pid_fd); });
  EXPECT_EQ(seen, own) << "it has become another program, and may have ended";
  pollfd end{process.pidFd(), POLLIN, 0};
  ASSERT_EQ(::poll(&end, 1, 60'000), 1);
  const auto ending = process.ending();
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->exitStatus(), 3);
}

TEST(RankProcess, WhatCannotRunIsToldNevertheless) {
  const ProcessSetup setup;
  const auto ignore = [](int) {};
  EXPECT_THROW(RankProcess(planOf("/no/such/program"), setup, 0, ignore), NotRunnable);
}

}  // namespace
}  // namespace tutti::run
