#include "transports/tcp/frame_writer.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

constexpr std::size_t kFramesPerCall = 16;
constexpr std::array<std::byte, 1> kPad{};

/// The frames of one call.
struct Batch {
  std::array<iovec, 3 * kFramesPerCall> parts;
  std::array<std::size_t, kFramesPerCall> sizes;
  std::size_t part_count = 0;
  std::size_t frame_count = 0;
  std::size_t bytes = 0;

  /// Adds a part without its first `skipped` bytes; returns how many are still to be skipped.
  std::size_t add(std::span<const std::byte> part, std::size_t skipped) {
    if (part.size() <= skipped) return skipped - part.size();
    parts[part_count++] = {const_cast<std::byte*>(part.data()) + skipped, part.size() - skipped};
    bytes += part.size() - skipped;
    return 0;
  }

  void gather(FrameWriter::Frames& frames, std::size_t offset) {
    FrameWriter::Frame frame;
    while (frame_count < kFramesPerCall && frames.waiting(frame_count, &frame)) {
      sizes[frame_count++] = frame.header.size() + frame.payload.size() + kPad.size();
      offset = add(frame.header, offset);
      offset = add(frame.payload, offset);
      offset = add(kPad, offset);
    }
  }
};

}  // namespace

StreamStatus FrameWriter::pump(Wire& wire, int fd, Frames& frames) {
  for (;;) {
    Batch batch;
    batch.gather(frames, offset_);
    if (batch.frame_count == 0) return StreamStatus::more;
    msghdr message{};
    message.msg_iov = batch.parts.data();
    message.msg_iovlen = batch.part_count;
    const ssize_t put = wire.send(fd, message);
    if (put < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return StreamStatus::blocked;
      problem_ = fmt::format("{} (errno {})", std::strerror(errno), errno);
      return StreamStatus::broken;
    }
    offset_ += static_cast<std::size_t>(put);
    for (std::size_t k = 0; k < batch.frame_count && offset_ >= batch.sizes[k]; ++k) {
      offset_ -= batch.sizes[k];
      frames.sent();
    }
    // A full send buffer: the next call would only say so.
    if (static_cast<std::size_t>(put) < batch.bytes) return StreamStatus::blocked;
  }
}

}  // namespace tutti
