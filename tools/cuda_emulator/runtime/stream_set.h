// The streams of one device, and the order between them that CUDA's legacy default stream imposes.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {

/// Work in the legacy stream follows all earlier work of the blocking streams; work in a blocking stream
/// follows all earlier work of the legacy stream. Every wait is for work enqueued earlier, so none is
/// circular. Thread-safe.
class StreamSet {
 public:
  explicit StreamSet(Device& device);

  const StreamPtr& legacy() const { return legacy_; }
  StreamPtr create(const StreamTraits& traits);

  void enqueue(Stream& stream, Work work);
  /// Everything enqueued so far in all of the device's streams, also those that were destroyed, is done.
  void synchronize();
  /// For the legacy stream, whose work waits for that of others: all that it would wait for is done, too.
  void synchronize(Stream& stream);
  bool idle(const Stream& stream) const;
  void closeAll();

 private:
  std::vector<CompletionPtr> tailsBefore(const Stream& stream) const;
  void forgetEnded();

  Device& device_;
  const StreamPtr legacy_;
  mutable std::mutex mutex_;
  std::vector<StreamPtr> streams_;  // without the legacy one
};

}  // namespace tutti::emulator
