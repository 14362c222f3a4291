#include "tools/cuda_emulator/runtime/stream.h"

#include <cuda_runtime_api.h>

#include <atomic>
#include <iterator>
#include <list>
#include <thread>
#include <utility>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/injected_faults.h"

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

/// The threads of all streams, until they are joined.
class StreamThreads {
 public:
  void start(const StreamPtr& stream, std::function<void()> body) {
    const std::lock_guard lock(mutex_);
    threads_.push_back({stream, std::thread(std::move(body))});
  }

  void joinEnded() {
    std::list<Entry> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(threads_);
    }
    std::list<Entry> ended;
    for (auto entry = all.begin(); entry != all.end();) {
      const auto next = std::next(entry);
      if (entry->hasEnded()) ended.splice(ended.end(), all, entry);
      entry = next;
    }
    for (Entry& entry : ended) entry.thread.join();
    const std::lock_guard lock(mutex_);
    threads_.splice(threads_.end(), all);
  }

 private:
  struct Entry {
    std::weak_ptr<Stream> stream;
    std::thread thread;

    bool hasEnded() const {
      const StreamPtr held = stream.lock();
      const bool is_done = held == nullptr || (held->closed() && held->idle());
      return is_done && thread.get_id() != std::this_thread::get_id();
    }
  };
  std::mutex mutex_;
  std::list<Entry> threads_;
};

StreamThreads& streamThreads() {
  static auto* const result = new StreamThreads;  // threads may outlive main
  return *result;
}

__attribute__((destructor)) void joinAtTheEnd() { streamThreads().joinEnded(); }

}  // namespace

void joinEndedStreams() { streamThreads().joinEnded(); }

Stream::Stream(Device& device, const StreamTraits& traits)
    : device_(device), traits_(traits), id_(nextId()), tail_(completed()) {}

bool Stream::isBlocking() const { return !isLegacy() && (traits_.flags & cudaStreamNonBlocking) == 0; }

void Stream::append(Work work) {
  const std::lock_guard lock(mutex_);
  require(!closed_, cudaErrorInvalidResourceHandle);
  tail_ = std::make_shared<Completion>();
  queue_.push_back({std::move(work), tail_});
  if (!std::exchange(started_, true)) {
    const auto self = shared_from_this();
    streamThreads().start(self, [self] { self->run(); });
  }
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
    injectedFaults().delay(device_);
    item.work();
    item.work = nullptr;  // what it holds goes before anybody is told
    item.completion->complete();
  }
}

}  // namespace tutti::emulator
