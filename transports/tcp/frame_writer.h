// Frames into a byte stream, many per call, payloads straight from where they are.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "transports/tcp/frame_reader.h"
#include "transports/wire.h"

namespace tutti {

/// Used by one thread at a time.
class FrameWriter {
 public:
  /// A frame that waits to be sent. It stays as it is until it has been.
  struct Frame {
    std::span<const std::byte> header;
    std::span<const std::byte> payload;
  };

  class Frames {
   public:
    /// The k-th frame that waits, 0 the one that is next. False: there are fewer.
    virtual bool waiting(std::size_t k, Frame* frame) = 0;
    /// The next one is with the kernel.
    virtual void sent() = 0;

   protected:
    ~Frames() = default;
  };

  void restart() { offset_ = 0; }

  /// Sends all that waits, unless the kernel takes no more. `more`: all was sent.
  StreamStatus pump(Wire& wire, int fd, Frames& frames);

  /// Whether a frame is partly sent.
  bool isInside() const { return offset_ != 0; }
  const std::string& problem() const { return problem_; }

 private:
  std::size_t offset_ = 0;  ///< bytes of the next frame that were sent
  std::string problem_;
};

}  // namespace tutti
