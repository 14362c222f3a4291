#include "tools/cuda_emulator/runtime/operation.h"

#include <cstring>
#include <utility>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {
namespace {

/// Marks the thread as being inside a host function, where CUDA may not be called.
class HostFunctionScope {
 public:
  HostFunctionScope() { threadState().in_host_function = true; }
  HostFunctionScope(const HostFunctionScope&) = delete;
  HostFunctionScope& operator=(const HostFunctionScope&) = delete;
  ~HostFunctionScope() { threadState().in_host_function = false; }
};

bool usable(const Device& device) { return device.fault() == cudaSuccess; }

}  // namespace

Operation plainOperation(cudaGraphNodeType type, Work work) {
  return {type, [work = std::move(work)] { return work; }};
}

Operation copyOperation(Device& device, const CopyPlan& plan) {
  return plainOperation(cudaGraphNodeTypeMemcpy, [&device, plan] {
    if (!usable(device)) return;
    for (std::size_t row = 0; row < plan.rows.count; ++row) {
      std::memmove(plan.target + row * plan.target_pitch, plan.source + row * plan.source_pitch,
                   plan.rows.bytes);
    }
  });
}

Operation fillOperation(Device& device, std::byte* target, std::size_t pitch, int value, Rows rows) {
  return plainOperation(cudaGraphNodeTypeMemset, [&device, target, pitch, value, rows] {
    if (!usable(device)) return;
    for (std::size_t row = 0; row < rows.count; ++row) std::memset(target + row * pitch, value, rows.bytes);
  });
}

Operation hostOperation(Device& device, cudaHostFn_t function, void* argument) {
  return plainOperation(cudaGraphNodeTypeHost, [&device, function, argument] {
    if (!usable(device)) return;
    const HostFunctionScope scope;
    function(argument);
  });
}

Operation callbackOperation(Device& device, cudaStream_t handle, cudaStreamCallback_t callback,
                            void* argument) {
  return plainOperation(cudaGraphNodeTypeHost, [&device, handle, callback, argument] {
    const HostFunctionScope scope;
    callback(handle, device.fault(), argument);
  });
}

Operation recordOperation(EventPtr event) {
  return {cudaGraphNodeTypeEventRecord, [event = std::move(event)]() -> Work {
            auto completion = std::make_shared<Completion>();
            event->setRecord(completion);
            return [completion] { completion->complete(); };
          }};
}

Operation waitOperation(EventPtr event) {
  return {cudaGraphNodeTypeWaitEvent, [event = std::move(event)]() -> Work {
            auto completion = event->lastRecord();
            return [completion] {
              if (completion != nullptr) completion->wait();
            };
          }};
}

}  // namespace tutti::emulator
