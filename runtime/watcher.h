// The one thread of a process that runs when no caller does: it looks after the control planes and the
// network links of communicators that span several hosts. Communicators on one host need none: what they owe
// lies in memory that outlives the call.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/core/unique_fd.h"
#include "transports/network.h"

namespace tutti {

/// Something that the Watcher looks after.
class Watched {
 public:
  /// When to come again: as soon as fd() is readable, if that matters, and after `delay` at the latest.
  struct Next {
    bool when_readable = true;
    std::optional<std::chrono::milliseconds> delay = std::nullopt;
  };

  /// Does not change.
  virtual int fd() const = 0;
  /// Does what there is to do, without blocking. In the Watcher's thread.
  virtual Next attend() = 0;

 protected:
  ~Watched() = default;
};

/// Sleeps in epoll until there is something to do. The thread runs while something is watched. Thread-safe.
class Watcher {
 public:
  Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher() = default;  ///< nothing is watched any more

  /// Throws Error(ncclSystemError) when there is no descriptor or thread for it.
  void add(Watched& watched);
  /// `watched` is attended no more once this returns. Not from attend().
  void remove(Watched& watched);
  /// Attends everything once, soon.
  void wake() const;

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void serve();
  void attend(Watched& watched);
  int sleepLimit() const;

  std::mutex life_;   ///< held while the thread is started or ended
  std::mutex mutex_;  ///< guards what is watched; held while it is attended
  UniqueFd epoll_;
  UniqueFd wakeup_;
  std::map<Watched*, std::optional<Clock::time_point>> due_;  ///< when to attend without being called
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

/// Watches something for as long as it lives.
class Watching {
 public:
  Watching(Watcher& watcher, Watched& watched) : watcher_(watcher), watched_(watched) {
    watcher_.add(watched_);
  }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  ~Watching() { watcher_.remove(watched_); }

 private:
  Watcher& watcher_;
  Watched& watched_;
};

/// Finishes what callers left in network links.
class NetworkCare final : public Watched {
 public:
  NetworkCare(Network& network, Watcher& watcher);
  int fd() const override { return network_.fd(); }
  Next attend() override;

 private:
  Network& network_;
  std::chrono::milliseconds busy_delay_{};  ///< until the next look at a caller that is inside
};

}  // namespace tutti
