// What can be put into a stream or become a node of a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

#include "tools/cuda_emulator/runtime/event.h"
#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {

/// A value. A stream binds it once, a graph at each launch.
struct Operation {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  /// Called when the operation is enqueued, in that order: it settles what depends on the moment, such as
  /// which record of an event is waited for. What it returns is called once, by the stream's thread.
  std::function<Work()> bind;
};

/// Rows of equal length; one row is the plain case.
struct Rows {
  std::size_t bytes = 0;
  std::size_t count = 1;
};

struct CopyPlan {
  std::byte* target = nullptr;
  const std::byte* source = nullptr;
  std::size_t target_pitch = 0;
  std::size_t source_pitch = 0;
  Rows rows;
};

/// Nothing is done on a device that has failed.
Operation copyOperation(Device& device, const CopyPlan& plan);
Operation fillOperation(Device& device, std::byte* target, std::size_t pitch, int value, Rows rows);
/// A host function is not called once the device has failed.
Operation hostOperation(Device& device, cudaHostFn_t function, void* argument);
/// A stream's callback is, and is told.
Operation callbackOperation(Device& device, cudaStream_t handle, cudaStreamCallback_t callback,
                            void* argument);
Operation recordOperation(EventPtr event);
Operation waitOperation(EventPtr event);
Operation plainOperation(cudaGraphNodeType type, Work work);

}  // namespace tutti::emulator
