// The captures under way in this process, and what they forbid.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/cuda_emulator/runtime/capture.h"

namespace tutti::emulator {

struct CaptureInfo {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  std::uint64_t id = 0;
  cudaGraph_t graph = nullptr;
  const std::vector<cudaGraphNode_t>* tips = nullptr;  ///< valid until the stream's next call
};

/// Thread-safe. What is forbidden while a capture is under way throws CUDA's code for it and, as CUDA does,
/// invalidates the capture that forbade it.
class Captures {
 public:
  void begin(const StreamPtr& stream, cudaStreamCaptureMode mode);
  /// Ends it however it went. Returns the graph; throws where the capture has become invalid, or now does.
  cudaGraph_t end(const StreamPtr& stream);

  /// The next three: true where the stream captures and the call has become part of the graph; false where it
  /// is to be carried out.
  bool add(const StreamPtr& stream, const Operation& operation);
  bool record(const StreamPtr& stream, const EventPtr& event, bool external);
  bool wait(const StreamPtr& stream, const EventPtr& event, bool external);

  /// For calls that may wait or have effects on other work, such as cudaMalloc: forbidden by the modes of
  /// captures and of this thread.
  void requireSafe();
  /// For calls that a capturing stream does not support, such as waiting for it.
  void requireNotCapturing(const Stream& stream);
  /// The same for any stream of the device; and for the legacy stream, because of the order that it imposes.
  void requireNoneCapturing(const Device& device);
  void requireNoneBlocking(const Device& device);
  /// A captured event was waited for or asked about: its capture is invalid now.
  void invalidate(const CapturedPoint& point);

  CaptureInfo info(const StreamPtr& stream);
  /// Sets, or adds to, what the stream's next node follows.
  void setTips(const StreamPtr& stream, const std::vector<cudaGraphNode_t>& nodes, bool add);

 private:
  std::shared_ptr<Capture> find(const Stream& stream) const;
  std::shared_ptr<Capture> requireValid(const Stream& stream) const;
  bool anyCaptures() const { return count_.load(std::memory_order_acquire) > 0; }
  void joinOrFollow(const StreamPtr& stream, const std::shared_ptr<Capture>& capture,
                    const CapturedPoint& point);

  std::mutex mutex_;
  std::list<std::shared_ptr<Capture>> captures_;
  std::atomic<std::size_t> count_{0};  // of captures_, for a look without the lock
  std::uint64_t last_id_ = 0;
};

Captures& captures();

/// Puts an operation into a stream, or into the graph that it captures.
void submit(const StreamPtr& stream, const Operation& operation);

}  // namespace tutti::emulator
