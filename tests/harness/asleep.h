// Whether a thread of this process has got to where it waits for others.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace tutti::test {

/// How often a thread has gone to sleep so far.
inline long sleepsOf(pid_t thread) {
  constexpr char kName[] = "voluntary_ctxt_switches:";
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kName)) return std::stol(line.substr(sizeof(kName) - 1));
  }
  return 0;
}

/// Waits until a thread, which has written its number down just before a call that waits, has slept several
/// times since: the library looks around between naps, so it is in that call.
inline void awaitAsleep(const std::atomic<pid_t>& thread) {
  constexpr long kNaps = 5;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  while (thread == 0 && std::chrono::steady_clock::now() < end) pause();
  const long before = sleepsOf(thread);
  while (sleepsOf(thread) < before + kNaps && std::chrono::steady_clock::now() < end) pause();
  EXPECT_GE(sleepsOf(thread), before + kNaps) << "the thread does not wait";
}

}  // namespace tutti::test
