// Who may work on a communicator, and when: its work is serial, in the order in which it was issued.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace tutti {

/// Tickets of one communicator. Issued by one thread at a time, served in order, whatever threads the work
/// runs on.
class Turns {
 public:
  /// The next ticket. Its holder calls await() and then done(), once each.
  std::uint64_t issue();

  /// Whether work that was issued is not done.
  bool pending() const { return outstanding_.load(std::memory_order_acquire) != 0; }

  /// Waits until everything issued before `ticket` is done, or until cut(): order no longer matters then.
  void await(std::uint64_t ticket);
  void done();

  /// Waits until nothing is pending.
  void awaitAll();
  /// Lets every waiter go: the communicator has a fault, so all that is issued fails at once.
  void cut();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t issued_ = 0;
  std::uint64_t served_ = 0;
  bool is_cut_ = false;
  std::atomic<std::uint64_t> outstanding_{0};
};

}  // namespace tutti
