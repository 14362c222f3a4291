#include "runtime/cuda/work_order.h"

namespace tutti {
namespace {

std::uint64_t idOf(cudaStream_t stream) {
  unsigned long long id = 0;
  checkCuda(cudaStreamGetId(stream, &id), "cudaStreamGetId");
  return id;
}

/// The capture that the stream is in.
std::optional<std::uint64_t> captureOf(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  checkCuda(cudaStreamGetCaptureInfo(stream, &status, &id), "cudaStreamGetCaptureInfo");
  if (status == cudaStreamCaptureStatusNone) return {};
  return id;
}

}  // namespace

bool WorkOrder::isCapturing(cudaStream_t stream) { return captureOf(stream).has_value(); }

bool WorkOrder::begin(cudaStream_t stream) {
  constexpr const char* kWait = "cudaStreamWaitEvent";
  const auto capture = captureOf(stream);
  const std::uint64_t id = idOf(stream);
  const bool follows = stream_ == id && capture_ == capture;
  if (!capture) {
    const bool is_ordered = !was_captured_ && (follows || !stream_);
    if (!is_ordered) checkCuda(cudaStreamWaitEvent(stream, last_.get()), kWait);
  } else if (capture != capture_) {
    graphs_.add(stream);
    checkCuda(cudaStreamWaitEvent(stream, last_.get(), cudaEventWaitExternal), kWait);
  } else if (!follows) {
    checkCuda(cudaStreamWaitEvent(stream, inside_.get()), kWait);
  }
  capture_ = capture;
  stream_ = id;
  was_captured_ = was_captured_ || capture;
  return capture.has_value();
}

void WorkOrder::end(cudaStream_t stream) {
  constexpr const char* kRecord = "cudaEventRecord";
  if (!capture_) {
    checkCuda(cudaEventRecord(last_.get(), stream), kRecord);
    return;
  }
  checkCuda(cudaEventRecordWithFlags(last_.get(), stream, cudaEventRecordExternal), kRecord);
  checkCuda(cudaEventRecord(inside_.get(), stream), kRecord);
}

void WorkOrder::endAfterFailure(cudaStream_t stream) noexcept {
  // In a capture, too, the next work waits for last_.
  const unsigned flags = capture_ ? cudaEventRecordExternal : cudaEventRecordDefault;
  const auto isRecorded = [&] { return succeeded(cudaEventRecordWithFlags(last_.get(), stream, flags)); };
  bool is_recorded = isRecorded();
  if (!is_recorded) is_recorded = isRecorded();
  if (!is_recorded) is_lost_ = true;
}

void WorkOrder::abandon() noexcept {
  for (OwnedEvent* event : {&last_, &inside_, &fork_}) static_cast<void>(event->release());
}

void WorkOrder::join(cudaStream_t before, cudaStream_t after) {
  if (before == after) return;
  checkCuda(cudaEventRecord(fork_.get(), before), "cudaEventRecord");
  checkCuda(cudaStreamWaitEvent(after, fork_.get()), "cudaStreamWaitEvent");
}

bool WorkOrder::isDone() const {
  const cudaError_t error = cudaEventQuery(last_.get());
  if (error == cudaErrorNotReady) {
    succeeded(error);
    return false;
  }
  checkCuda(error, "cudaEventQuery after the kernels of this rank");
  return !is_lost_;
}

}  // namespace tutti
