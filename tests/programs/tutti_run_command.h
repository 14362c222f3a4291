// Runs tutti-run with a shell script for each rank; what its test files share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/harness/command.h"

namespace tutti::test {

using Environment = std::map<std::string, std::string>;

inline constexpr std::chrono::seconds kPatience{60};

/// argv of tutti-run with `options` and a shell script for each rank.
inline std::vector<std::string> withScript(std::vector<std::string> options, const std::string& script) {
  options.insert(options.begin(), "tutti-run");
  options.insert(options.end(), {"sh", "-c", script});
  return options;
}

inline CommandResult runScript(std::vector<std::string> options, const std::string& script,
                               const Environment& environment = {}) {
  return runCommand(withScript(std::move(options), script), environment, kPatience);
}

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

inline std::vector<std::string> sortedLines(const std::string& text) {
  auto result = lines(text);
  std::sort(result.begin(), result.end());
  return result;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t result = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++result;
  return result;
}

/// Numbers that follow `label` in the output.
inline std::vector<int> numbersAfter(const std::string& text, const std::string& label) {
  std::vector<int> result;
  for (auto at = text.find(label); at != std::string::npos; at = text.find(label, at + 1)) {
    result.push_back(std::stoi(text.substr(at + label.size())));
  }
  return result;
}

/// A zombie that nobody reaps counts as gone.
inline bool gone(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) return line.find('Z') != std::string::npos;
  }
  return true;
}

inline bool awaitGone(int pid) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!gone(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

inline bool awaitReady(Command& command, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    std::string line = "[";
    line.append(std::to_string(rank)).append("] ready");
    if (!command.waitForOutput(line, kPatience)) return false;
  }
  return true;
}

class TuttiRun : public testing::Test {
 protected:
  // Whoever started the tests (nohup, a background job) may ignore these, and children would inherit it.
  static void SetUpTestSuite() {
    for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_DFL);
  }
};

}  // namespace tutti::test
