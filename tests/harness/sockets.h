// Counts the sockets of this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

namespace tutti::test {

/// Of all kinds, now.
inline int openSockets() {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const auto target = std::filesystem::read_symlink(entry.path(), error).string();
    count += target.starts_with("socket:") ? 1 : 0;
  }
  return count;
}

/// The most there have been since it was made, looked at from time to time by a thread of its own.
class SocketCount {
 public:
  explicit SocketCount(std::chrono::milliseconds interval)
      : thread_([this, interval] {
          for (; !is_over_; std::this_thread::sleep_for(interval)) look();
        }) {}
  SocketCount(const SocketCount&) = delete;
  SocketCount& operator=(const SocketCount&) = delete;
  ~SocketCount() {
    is_over_ = true;
    thread_.join();
  }
  void look() { most_ = std::max(most_.load(), openSockets()); }
  int most() const { return most_; }

 private:
  std::atomic<int> most_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

}  // namespace tutti::test
