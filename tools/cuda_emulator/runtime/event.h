// Events: what was recorded last.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/cuda_emulator/runtime/completion.h"

namespace tutti::emulator {

class Capture;
class Device;

/// A place in a capture: the nodes that whoever waits for the event depends on.
struct CapturedPoint {
  std::weak_ptr<Capture> capture;
  std::vector<std::size_t> nodes;
};

/// Thread-safe. An event is either recorded in a stream's work or captured, whichever was last.
class Event {
 public:
  Event(Device& device, unsigned flags) : device_(device), flags_(flags) {}

  Device& device() const { return device_; }
  bool hasTiming() const { return (flags_ & cudaEventDisableTiming) == 0; }

  /// From now on it stands for what `completion` stands for.
  void setRecord(CompletionPtr completion);
  void setCaptured(CapturedPoint point);
  /// nullptr: never recorded. Throws cudaErrorCapturedEvent.
  CompletionPtr record() const;
  /// The same of an event that was captured since.
  CompletionPtr lastRecord() const;
  /// nullptr: not captured.
  std::shared_ptr<const CapturedPoint> captured() const;

 private:
  Device& device_;
  const unsigned flags_;
  mutable std::mutex mutex_;
  CompletionPtr record_;
  std::shared_ptr<const CapturedPoint> captured_;
};

using EventPtr = std::shared_ptr<Event>;

/// From one record to the other. Throws cudaErrorInvalidResourceHandle where there is none to measure,
/// cudaErrorNotReady while one is under way.
float millisecondsBetween(const Event& start, const Event& end);

}  // namespace tutti::emulator
