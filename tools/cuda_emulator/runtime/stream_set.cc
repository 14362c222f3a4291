#include "tools/cuda_emulator/runtime/stream_set.h"

#include <utility>

namespace tutti::emulator {

StreamSet::StreamSet(Device& device)
    : device_(device),
      legacy_(std::make_shared<Stream>(device, StreamTraits{.kind = StreamTraits::Kind::legacy})) {}

StreamPtr StreamSet::create(const StreamTraits& traits) {
  joinEndedStreams();
  auto result = std::make_shared<Stream>(device_, traits);
  const std::lock_guard lock(mutex_);
  forgetEnded();
  streams_.push_back(result);
  return result;
}

/// What work that is now enqueued in `stream` must follow, besides the stream's own.
std::vector<CompletionPtr> StreamSet::tailsBefore(const Stream& stream) const {
  std::vector<CompletionPtr> result;
  const auto add = [&](const Stream& other) {
    auto tail = other.tail();
    if (!tail->done()) result.push_back(std::move(tail));
  };
  if (stream.isLegacy()) {
    for (const auto& other : streams_) {
      if (other->isBlocking()) add(*other);
    }
  } else if (stream.isBlocking()) {
    add(*legacy_);
  }
  return result;
}

void StreamSet::enqueue(Stream& stream, Work work) {
  const std::lock_guard lock(mutex_);
  auto before = tailsBefore(stream);
  if (before.empty()) return stream.append(std::move(work));
  stream.append([before = std::move(before), work = std::move(work)] {
    for (const auto& tail : before) tail->wait();
    work();
  });
}

void StreamSet::synchronize() {
  std::vector<CompletionPtr> tails{legacy_->tail()};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& stream : streams_) tails.push_back(stream->tail());
    forgetEnded();
  }
  for (const auto& tail : tails) tail->wait();
}

void StreamSet::synchronize(Stream& stream) {
  std::vector<CompletionPtr> tails{stream.tail()};
  if (stream.isLegacy()) {
    const std::lock_guard lock(mutex_);
    auto others = tailsBefore(stream);
    tails.insert(tails.end(), others.begin(), others.end());
  }
  for (const auto& tail : tails) tail->wait();
}

bool StreamSet::idle(const Stream& stream) const {
  const std::lock_guard lock(mutex_);
  return stream.idle() && (!stream.isLegacy() || tailsBefore(stream).empty());
}

void StreamSet::closeAll() {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) stream->close();
}

void StreamSet::forgetEnded() {
  std::erase_if(streams_, [](const StreamPtr& stream) { return stream->closed() && stream->idle(); });
}

}  // namespace tutti::emulator
