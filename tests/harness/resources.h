// What this process holds of the system, to find what was left behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

namespace tutti::test {

/// Sanitizers keep memory of their own: what is mapped says nothing then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsMemory = false;
#else
constexpr bool kCountsMemory = true;
#endif

inline int entriesOf(const char* folder) {
  int count = 0;
  std::error_code error;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder, error)) ++count;
  return count;
}

struct Resources {
  int fds = 0;
  int threads = 0;
  int mappings = 0;         ///< of memory, of all kinds; the allocator keeps some
  int shared_mappings = 0;  ///< of memory that ranks share
  int resident_kib = 0;

  static Resources now() {
    // ThreadSanitizer starts a thread of its own with the first one.
    [[maybe_unused]] static const bool has_started = [] {
      std::thread([] {}).join();
      return true;
    }();
    Resources result{.fds = entriesOf("/proc/self/fd"), .threads = entriesOf("/proc/self/task")};
    std::string line;
    for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line); ++result.mappings) {
      if (line.find("/memfd:") != std::string::npos) ++result.shared_mappings;
    }
    constexpr char kResident[] = "VmRSS:";
    for (std::ifstream status("/proc/self/status"); std::getline(status, line);) {
      if (line.starts_with(kResident)) result.resident_kib = std::stoi(line.substr(sizeof(kResident) - 1));
    }
    return result;
  }

  /// Now, or as soon as no more descriptors and threads are left than `before`, which may take a moment: a
  /// thread that was joined can still be listed.
  static Resources after(const Resources& before, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    for (;;) {
      const Resources result = now();
      const bool is_clean = result.fds <= before.fds && result.threads <= before.threads;
      if (is_clean || std::chrono::steady_clock::now() >= end) return result;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::string text() const {
    return std::to_string(fds) + " descriptors, " + std::to_string(threads) + " threads, " +
           std::to_string(mappings) + " mappings (" + std::to_string(shared_mappings) + " shared), " +
           std::to_string(resident_kib) + " KiB resident";
  }
};

}  // namespace tutti::test
