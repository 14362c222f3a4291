#include "tools/cuda_emulator/runtime/event.h"

#include <utility>

#include "tools/cuda_emulator/runtime/error.h"

namespace tutti::emulator {

void Event::setRecord(CompletionPtr completion) {
  const std::lock_guard lock(mutex_);
  record_ = std::move(completion);
  captured_ = nullptr;
}

void Event::setCaptured(CapturedPoint point) {
  const std::lock_guard lock(mutex_);
  captured_ = std::make_shared<const CapturedPoint>(std::move(point));
}

CompletionPtr Event::record() const {
  const std::lock_guard lock(mutex_);
  require(captured_ == nullptr, cudaErrorCapturedEvent);
  return record_;
}

CompletionPtr Event::lastRecord() const {
  const std::lock_guard lock(mutex_);
  return record_;
}

std::shared_ptr<const CapturedPoint> Event::captured() const {
  const std::lock_guard lock(mutex_);
  return captured_;
}

float millisecondsBetween(const Event& start, const Event& end) {
  require(start.hasTiming() && end.hasTiming(), cudaErrorInvalidResourceHandle);
  const auto first = start.record();
  const auto last = end.record();
  require(first != nullptr && last != nullptr, cudaErrorInvalidResourceHandle);
  require(first->done() && last->done(), cudaErrorNotReady);
  return std::chrono::duration<float, std::milli>(last->time() - first->time()).count();
}

}  // namespace tutti::emulator
