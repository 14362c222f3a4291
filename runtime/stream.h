// Host streams: work in order, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/batch.h"
#include "tutti/error.h"

namespace tutti {

/// A queue of batches and the thread that serves it. Thread-safe.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// As close().
  ~Stream();

  /// Waits for what is queued and ends the thread; no push may follow.
  void close();

  /// Queues a batch. The caller orders pushes to several streams, see Process::issueOrder(), and asks
  /// requireOpen() before.
  void requireOpen();
  void push(std::shared_ptr<Batch> batch);

  /// Waits for everything that was queued before the call. Throws the first error since the last
  /// synchronization; the stream is free of it afterwards.
  void synchronize();

  /// ncclInProgress while something is queued, else ncclSuccess; throws the first error since the last
  /// synchronization, and keeps it.
  ncclResult_t query();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Batch>> queue_;
  std::uint64_t pushed_ = 0;
  std::uint64_t completed_ = 0;
  bool closing_ = false;
  std::optional<Error> error_;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace tutti
