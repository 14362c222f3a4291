// A stream: work in order, carried out by a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "tools/cuda_emulator/runtime/completion.h"

namespace tutti::emulator {

class Device;

/// Does not throw; a failure goes to the device.
using Work = std::function<void()>;

struct StreamTraits {
  enum class Kind { legacy, per_thread, created };
  Kind kind = Kind::created;
  unsigned flags = 0;
  int priority = 0;
};

/// Thread-safe. Held by a shared_ptr; its thread, which starts with the first work, holds it too until it is
/// closed and everything is done. Nobody waits for a thread that has work: a program may exit while a kernel
/// hangs.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Device& device, const StreamTraits& traits);

  Device& device() const { return device_; }
  const StreamTraits& traits() const { return traits_; }
  std::uint64_t id() const { return id_; }
  bool isLegacy() const { return traits_.kind == StreamTraits::Kind::legacy; }
  /// Takes part in the order that the legacy default stream imposes.
  bool isBlocking() const;

  /// Appends. Not ordered with other streams: StreamSet does that. Throws cudaErrorInvalidResourceHandle once
  /// it is closed.
  void append(Work work);
  /// Of all that was appended so far; done when that is nothing.
  CompletionPtr tail() const;
  bool idle() const { return tail()->done(); }
  /// No work comes after this.
  void close();
  bool closed() const;

 private:
  struct Item {
    Work work;
    CompletionPtr completion;
  };
  void run();

  Device& device_;
  const StreamTraits traits_;
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  CompletionPtr tail_;
  bool started_ = false;
  bool closed_ = false;
};

using StreamPtr = std::shared_ptr<Stream>;

/// Joins the threads of streams that are closed and done. Without a stream's lock held. Also done when the
/// process ends, so that no thread is then just about to.
void joinEndedStreams();

}  // namespace tutti::emulator
