#include "tools/cuda_emulator/runtime/stream.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>
#include <utility>

#include "tools/cuda_emulator/runtime/error.h"

namespace tutti::emulator {
namespace {

std::uint64_t nextId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

CompletionPtr completed() {
  auto result = std::make_shared<Completion>();
  result->complete();
  return result;
}

}  // namespace

Stream::Stream(Device& device, const StreamTraits& traits)
    : device_(device), traits_(traits), id_(nextId()), tail_(completed()) {}

bool Stream::isBlocking() const { return !isLegacy() && (traits_.flags & cudaStreamNonBlocking) == 0; }

void Stream::append(Work work) {
  const std::lock_guard lock(mutex_);
  require(!closed_, cudaErrorInvalidResourceHandle);
  tail_ = std::make_shared<Completion>();
  queue_.push_back({std::move(work), tail_});
  if (!std::exchange(started_, true)) std::thread([self = shared_from_this()] { self->run(); }).detach();
  changed_.notify_one();
}

CompletionPtr Stream::tail() const {
  const std::lock_guard lock(mutex_);
  return tail_;
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

bool Stream::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void Stream::run() {
  for (;;) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || closed_; });
      if (queue_.empty()) return;
      item = std::move(queue_.front());
      queue_.pop_front();
    }
    item.work();
    item.work = nullptr;  // what it holds goes before anybody is told
    item.completion->complete();
  }
}

}  // namespace tutti::emulator
