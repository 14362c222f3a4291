// Queue pairs on their way to their peers.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/settings.h"
#include "transports/verbs/queue_pairs.h"

namespace tutti {

/// The threads in which the queue pairs of one network are connected. The kernel may have to ask the network
/// for a peer's hardware address, and waits seconds for an answer where nobody gives one; the other links of
/// the rank, and letters, must not wait with it. Used by one thread at a time.
class ConnectingThreads {
 public:
  /// Longer than any kernel was seen to wait for a hardware address (connecting.cc).
  static constexpr std::chrono::milliseconds kPatience{6000};

  /// `note`: what people should know of how it ended; may be empty.
  explicit ConnectingThreads(std::function<void(const std::string&)> note,
                             std::chrono::milliseconds patience = kPatience)
      : note_(std::move(note)), patience_(patience) {}
  ConnectingThreads(const ConnectingThreads&) = delete;
  ConnectingThreads& operator=(const ConnectingThreads&) = delete;
  /// Waits until all threads have ended, as long as the patience lasts. One that the kernel holds longer is
  /// left behind, with the queue pairs it works on; its code stays in memory, whatever the program unloads.
  ~ConnectingThreads();

  /// Runs the task in a thread; at once where there is none to be had.
  void run(std::packaged_task<std::string()> task, const std::shared_future<std::string>& result);

 private:
  struct Running {
    std::thread thread;
    std::shared_future<std::string> result;
  };

  std::function<void(const std::string&)> note_;
  std::chrono::milliseconds patience_;
  std::vector<Running> running_;
};

/// Queue pairs that are being connected. Whoever gives up lets go of this and of the pairs, and waits for
/// nothing: the thread keeps what it works on.
class Connecting {
 public:
  Connecting(ConnectingThreads& threads, std::shared_ptr<QueuePairs> pairs, const Gid& mine,
             const QueuePairAddress& remote, const RdmaSettings& settings);

  /// Nothing while it lasts; then what was wrong, or "" for connected.
  std::optional<std::string> result() const;

 private:
  std::shared_future<std::string> result_;
};

}  // namespace tutti
