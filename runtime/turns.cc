#include "runtime/turns.h"

namespace tutti {

std::uint64_t Turns::issue() {
  const std::scoped_lock lock(mutex_);
  outstanding_.fetch_add(1, std::memory_order_relaxed);
  return issued_++;
}

void Turns::await(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_cut_ || served_ == ticket; });
}

void Turns::done() {
  const std::scoped_lock lock(mutex_);
  ++served_;
  // Release: whoever sees that nothing is pending sees what the work wrote.
  outstanding_.fetch_sub(1, std::memory_order_release);
  changed_.notify_all();
}

void Turns::awaitAll() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !pending(); });
}

void Turns::cut() {
  const std::scoped_lock lock(mutex_);
  is_cut_ = true;
  changed_.notify_all();
}

}  // namespace tutti
