#include "tools/cuda_emulator/runtime/captures.h"

#include <algorithm>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {
namespace {

[[noreturn]] void refuse(Capture& capture, cudaError_t code) {
  capture.invalidate();
  throw CudaError(code);
}

}  // namespace

Captures& captures() {
  static auto* const result = new Captures;
  return *result;
}

std::shared_ptr<Capture> Captures::find(const Stream& stream) const {
  const auto found = std::find_if(captures_.begin(), captures_.end(),
                                  [&](const auto& capture) { return capture->has(stream); });
  return found != captures_.end() ? *found : nullptr;
}

/// nullptr: the stream does not capture. Throws where its capture is invalid.
std::shared_ptr<Capture> Captures::requireValid(const Stream& stream) const {
  auto capture = find(stream);
  require(capture == nullptr || capture->valid(), cudaErrorStreamCaptureInvalidated);
  return capture;
}

void Captures::begin(const StreamPtr& stream, cudaStreamCaptureMode mode) {
  require(!stream->isLegacy(), cudaErrorStreamCaptureUnsupported);
  require(mode >= cudaStreamCaptureModeGlobal && mode <= cudaStreamCaptureModeRelaxed, cudaErrorInvalidValue);
  const std::lock_guard lock(mutex_);
  require(find(*stream) == nullptr, cudaErrorIllegalState);
  captures_.push_back(std::make_shared<Capture>(stream, mode, ++last_id_));
  count_ = captures_.size();
}

cudaGraph_t Captures::end(const StreamPtr& stream) {
  const std::lock_guard lock(mutex_);
  const auto capture = find(*stream);
  require(capture != nullptr, cudaErrorIllegalState);
  if (capture->origin() != stream) refuse(*capture, cudaErrorStreamCaptureUnmatched);
  const bool own_thread =
      capture->mode() == cudaStreamCaptureModeRelaxed || capture->thread() == std::this_thread::get_id();
  require(own_thread, cudaErrorStreamCaptureWrongThread);
  captures_.remove(capture);
  count_ = captures_.size();
  const auto code = !capture->valid()    ? cudaErrorStreamCaptureInvalidated
                    : !capture->joined() ? cudaErrorStreamCaptureUnjoined
                                         : cudaSuccess;
  if (code == cudaSuccess) return capture->graphHandle();
  graphHandles().remove(capture->graphHandle());
  throw CudaError(code);
}

bool Captures::add(const StreamPtr& stream, const Operation& operation) {
  if (!anyCaptures()) return false;
  if (stream->isLegacy()) requireNoneBlocking(stream->device());
  const std::lock_guard lock(mutex_);
  const auto capture = requireValid(*stream);
  if (capture == nullptr) return false;
  capture->add(stream, operation);
  return true;
}

bool Captures::record(const StreamPtr& stream, const EventPtr& event, bool external) {
  if (external) {
    require(info(stream).status != cudaStreamCaptureStatusNone, cudaErrorInvalidValue);
    return add(stream, recordOperation(event));
  }
  if (!anyCaptures()) return false;
  if (stream->isLegacy()) requireNoneBlocking(stream->device());
  const std::lock_guard lock(mutex_);
  const auto capture = requireValid(*stream);
  if (capture == nullptr) return false;
  const auto& tips = capture->tips().at(stream);
  event->setCaptured({capture, {tips.begin(), tips.end()}});
  return true;
}

bool Captures::wait(const StreamPtr& stream, const EventPtr& event, bool external) {
  if (external) {
    require(info(stream).status != cudaStreamCaptureStatusNone, cudaErrorInvalidValue);
    return add(stream, waitOperation(event));
  }
  const auto point = event->captured();
  if (!anyCaptures() && point == nullptr) return false;
  if (stream->isLegacy()) requireNoneBlocking(stream->device());
  const std::lock_guard lock(mutex_);
  const auto own = requireValid(*stream);
  if (point == nullptr) {
    if (own != nullptr) refuse(*own, cudaErrorStreamCaptureIsolation);
    return false;
  }
  joinOrFollow(stream, own, *point);
  return true;
}

void Captures::joinOrFollow(const StreamPtr& stream, const std::shared_ptr<Capture>& capture,
                            const CapturedPoint& point) {
  const auto other = point.capture.lock();
  const bool under_way =
      other != nullptr && std::find(captures_.begin(), captures_.end(), other) != captures_.end();
  if (!under_way) {
    if (capture != nullptr) capture->invalidate();
    throw CudaError(cudaErrorCapturedEvent);
  }
  require(other->valid(), cudaErrorStreamCaptureInvalidated);
  if (stream->isLegacy()) refuse(*other, cudaErrorStreamCaptureImplicit);
  if (capture != nullptr && capture != other) {
    capture->invalidate();
    refuse(*other, cudaErrorStreamCaptureMerge);
  }
  other->follow(stream, point.nodes);
}

void Captures::requireSafe() {
  if (!anyCaptures()) return;
  const auto thread_mode = threadState().capture_mode;
  if (thread_mode == cudaStreamCaptureModeRelaxed) return;
  const std::lock_guard lock(mutex_);
  bool safe = true;
  for (const auto& capture : captures_) {
    const bool own = capture->thread() == std::this_thread::get_id();
    const bool forbids =
        own ? capture->mode() != cudaStreamCaptureModeRelaxed
            : capture->mode() == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal;
    if (!forbids) continue;
    capture->invalidate();
    safe = false;
  }
  require(safe, cudaErrorStreamCaptureUnsupported);
}

void Captures::requireNotCapturing(const Stream& stream) {
  if (!anyCaptures()) return;
  if (stream.isLegacy()) requireNoneBlocking(stream.device());
  const std::lock_guard lock(mutex_);
  if (const auto capture = find(stream)) refuse(*capture, cudaErrorStreamCaptureUnsupported);
}

void Captures::requireNoneCapturing(const Device& device) {
  if (!anyCaptures()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& capture : captures_) {
    for (const auto& [stream, tips] : capture->tips()) {
      if (&stream->device() == &device) refuse(*capture, cudaErrorStreamCaptureUnsupported);
    }
  }
}

void Captures::requireNoneBlocking(const Device& device) {
  if (!anyCaptures()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& capture : captures_) {
    for (const auto& [stream, tips] : capture->tips()) {
      if (&stream->device() == &device && stream->isBlocking())
        refuse(*capture, cudaErrorStreamCaptureImplicit);
    }
  }
}

void Captures::invalidate(const CapturedPoint& point) {
  const std::lock_guard lock(mutex_);
  if (const auto capture = point.capture.lock()) capture->invalidate();
}

CaptureInfo Captures::info(const StreamPtr& stream) {
  const std::lock_guard lock(mutex_);
  const auto capture = find(*stream);
  if (capture == nullptr) return {};
  if (!capture->valid()) return {.status = cudaStreamCaptureStatusInvalidated, .id = capture->id()};
  return {.status = cudaStreamCaptureStatusActive,
          .id = capture->id(),
          .graph = capture->graphHandle(),
          .tips = &capture->tipHandles(stream)};
}

void Captures::setTips(const StreamPtr& stream, const std::vector<cudaGraphNode_t>& nodes, bool add) {
  const std::lock_guard lock(mutex_);
  const auto capture = requireValid(*stream);
  require(capture != nullptr, cudaErrorIllegalState);
  std::vector<std::size_t> indices;
  indices.reserve(nodes.size());
  for (auto* const node : nodes) indices.push_back(capture->graph()->indexOf(node));
  if (add) {
    capture->follow(stream, indices);
  } else {
    capture->setTips(stream, indices);
  }
}

void submit(const StreamPtr& stream, const Operation& operation) {
  if (captures().add(stream, operation)) return;
  stream->device().streams().enqueue(*stream, operation.bind());
}

}  // namespace tutti::emulator
