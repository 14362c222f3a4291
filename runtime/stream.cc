#include "runtime/stream.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <system_error>
#include <utility>

namespace tutti {

Stream::Stream() {
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    throw Error(
        ncclSystemError,
        fmt::format("tuttiStreamCreate: starting a thread: {}. Raise the limit of threads (ulimit -u) "
                    "or use fewer streams",
                    error.what()));
  }
}

Stream::~Stream() { close(); }

void Stream::close() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Stream::requireOpen() {
  const std::scoped_lock lock(mutex_);
  if (closing_) throw Error(ncclInvalidArgument, "a stream was destroyed while a group was about to use it");
}

void Stream::push(std::shared_ptr<Batch> batch) {
  const std::scoped_lock lock(mutex_);
  queue_.push_back(std::move(batch));
  ++pushed_;
  changed_.notify_all();
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  const std::uint64_t goal = pushed_;
  changed_.wait(lock, [&] { return completed_ >= goal; });
  if (const auto error = std::exchange(error_, std::nullopt)) throw Error(*error);
}

ncclResult_t Stream::query() {
  const std::scoped_lock lock(mutex_);
  if (completed_ != pushed_) return ncclInProgress;
  if (error_) throw Error(*error_);
  return ncclSuccess;
}

void Stream::serve() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are for the threads of the program
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::shared_ptr<Batch> batch = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    auto error = batch->arrive();
    batch.reset();  // may end a communicator that was destroyed meanwhile; not under the lock
    lock.lock();
    if (error && !error_) error_ = std::move(error);
    ++completed_;
    changed_.notify_all();
  }
}

}  // namespace tutti
