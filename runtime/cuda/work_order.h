// The order of one rank's work on its GPU: one after the other, whatever streams it came on.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "runtime/cuda/captured_graphs.h"
#include "transports/cuda_ipc/cuda_call.h"

namespace tutti {

/// Used by one thread at a time, with the rank's device current. Functions throw Error.
///
/// One event stands for the rank's latest work: each piece waits for it and then records it. Captured work
/// does both as nodes of its graph (external event nodes), so that replays are in order with each other and
/// with work that is queued directly. Pieces within one capture depend on each other by the graph's edges.
class WorkOrder {
 public:
  WorkOrder() : last_(makeEvent()), inside_(makeEvent()), fork_(makeEvent()) {}

  static bool isCapturing(cudaStream_t stream);

  /// Before a piece of work is queued on `stream`: the stream waits for all earlier ones. Returns whether the
  /// stream is being captured.
  bool begin(cudaStream_t stream);
  /// After it was queued.
  void end(cudaStream_t stream);
  /// Instead, where that or the queueing has failed: something may run all the same. Where it cannot be
  /// recorded, the rank's work is never done.
  void endAfterFailure(cudaStream_t stream) noexcept;

  /// After a reset of the device, which has ended the events.
  void abandon() noexcept;

  /// What is queued on `after` from now on waits for what is queued on `before` by now.
  void join(cudaStream_t before, cudaStream_t after);

  /// Whether all work has run, replays that are queued included: a record in a graph counts from the launch
  /// of the graph on. Throws Error where a kernel broke.
  bool isDone() const;
  /// Whether graphs hold work, so that there may be replays. Any thread.
  bool hasGraphs() const noexcept { return graphs_.exist(); }

 private:
  OwnedEvent last_;
  OwnedEvent inside_;  ///< the latest work of the capture capture_
  OwnedEvent fork_;
  bool is_lost_ = false;  ///< something may run that last_ does not tell of
  CapturedGraphs graphs_;
  // Of the latest piece of work.
  std::optional<std::uint64_t> capture_;  ///< nothing: it was queued directly
  std::optional<std::uint64_t> stream_;   ///< id, which no other stream ever gets; nothing: no piece yet
  bool was_captured_ = false;             ///< any piece: replays may come at any time, on any stream
};

}  // namespace tutti
