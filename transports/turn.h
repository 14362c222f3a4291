// Whose turn it is to drive the links of a network.
#pragma once

#include <atomic>

namespace tutti {

/// A lock that the thread which holds it may take again; by thread, not by fibre, as a std::recursive_mutex
/// is seen by tools that take fibres for threads. Contended only for a pass of the Watcher's, or by whoever
/// ends a network. Lockable, for std::lock_guard and std::unique_lock.
class Turn {
 public:
  void lock() {
    while (!try_lock()) {
      const void* const owner = owner_.load(std::memory_order_relaxed);
      if (owner != nullptr) owner_.wait(owner, std::memory_order_relaxed);
    }
  }

  bool try_lock() {
    const void* const self = thisThread();
    // Only this thread stores its own mark, so what it reads of it is true.
    if (owner_.load(std::memory_order_relaxed) != self) {
      const void* nobody = nullptr;
      // Acquire: what the last owner did is seen.
      if (!owner_.compare_exchange_strong(nobody, self, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
        return false;
      }
    }
    ++depth_;
    return true;
  }

  void unlock() {
    if (--depth_ != 0) return;
    owner_.store(nullptr, std::memory_order_release);
    owner_.notify_one();
  }

 private:
  static const void* thisThread() {
    static thread_local char mark;
    return &mark;
  }

  std::atomic<const void*> owner_{nullptr};
  int depth_ = 0;  ///< of the owner
};

}  // namespace tutti
