// Stream capture: work that becomes nodes of a graph instead of being done.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tools/cuda_emulator/runtime/event.h"
#include "tools/cuda_emulator/runtime/graph.h"
#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {

/// One capture sequence. Only Captures uses it, under its lock.
class Capture {
 public:
  Capture(StreamPtr origin, cudaStreamCaptureMode mode, std::uint64_t id);

  const StreamPtr& origin() const { return origin_; }
  cudaStreamCaptureMode mode() const { return mode_; }
  std::thread::id thread() const { return thread_; }
  std::uint64_t id() const { return id_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  cudaGraph_t graphHandle() const { return graph_handle_; }

  bool valid() const { return valid_; }
  void invalidate() { valid_ = false; }
  bool has(const Stream& stream) const;
  const std::map<StreamPtr, std::set<std::size_t>>& tips() const { return tips_; }

  /// A node that follows what the stream did before.
  void add(const StreamPtr& stream, const Operation& operation);
  /// The stream's next node also follows `nodes`; a stream that did not belong to the capture now does.
  void follow(const StreamPtr& stream, const std::vector<std::size_t>& nodes);
  /// The stream's next node follows only `nodes`.
  void setTips(const StreamPtr& stream, const std::vector<std::size_t>& nodes);
  /// Every other stream's last nodes come before one of the origin's.
  bool joined() const;
  /// Handles of the nodes that the stream's next one follows; valid until the next call.
  const std::vector<cudaGraphNode_t>& tipHandles(const StreamPtr& stream);

 private:
  const StreamPtr origin_;
  const cudaStreamCaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  const std::uint64_t id_;
  const std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  cudaGraph_t graph_handle_;
  bool valid_ = true;
  std::map<StreamPtr, std::set<std::size_t>> tips_;
  std::vector<cudaGraphNode_t> tip_handles_;
};

}  // namespace tutti::emulator
