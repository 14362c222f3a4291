#include "runtime/cuda/captured_graphs.h"

#include "transports/cuda_ipc/cuda_call.h"

namespace tutti {
namespace {

using Count = std::shared_ptr<std::atomic<int>>;

void forget(void* owned) {
  const std::unique_ptr<Count> count(static_cast<Count*>(owned));
  (*count)->fetch_sub(1, std::memory_order_release);
}

}  // namespace

void CapturedGraphs::add(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  checkCuda(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr),
            "cudaStreamGetCaptureInfo");
  count_->fetch_add(1, std::memory_order_relaxed);
  auto kept = std::make_unique<Count>(count_);
  cudaUserObject_t object = nullptr;
  if (!succeeded(cudaUserObjectCreate(&object, kept.get(), forget, 1, cudaUserObjectNoDestructorSync))) {
    return;
  }
  static_cast<void>(kept.release());
  if (succeeded(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove))) return;
  count_->fetch_add(1, std::memory_order_relaxed);  // which the object's end takes back
  succeeded(cudaUserObjectRelease(object, 1));
}

}  // namespace tutti
