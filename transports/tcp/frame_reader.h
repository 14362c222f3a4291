// Frames out of a byte stream, payloads straight to where they belong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/wire.h"

namespace tutti {

/// What became of a pass over a socket.
enum class StreamStatus {
  more,     ///< there may be more to do at once
  blocked,  ///< nothing more is possible until the kernel reports the socket
  ended,    ///< the other end closed it
  broken,   ///< see problem()
};

/// Behind every frame stands a byte of padding, which is read with the next frame only. So the kernel's queue
/// is not empty when a frame has been taken, and TCP does not answer each second small frame by an
/// acknowledgement of its own, at the price of a fifth of the frame: it acknowledges with the next credits.
///
/// Used by one thread at a time.
class FrameReader {
 public:
  /// What the reader asks the owner of the frames.
  class Frames {
   public:
    /// Where the payload of the next frame goes, as far as it can be known before its header is: bytes that
    /// come with the header are put there. May be empty.
    virtual std::span<std::byte> expected() = 0;
    /// A header has arrived. Says where its payload goes, at the place of expected() unless that was empty.
    /// False: the header is garbled.
    virtual bool begin(const std::byte* header, std::span<std::byte>* payload) = 0;
    /// The payload has arrived. False: it is garbled.
    virtual bool end() = 0;

   protected:
    ~Frames() = default;
  };

  static constexpr std::size_t kMaxHeader = 64;
  /// Payloads from this length on are large: they cost more than the calls that move them.
  static constexpr std::size_t kDirectBytes = 16384;

  explicit FrameReader(std::size_t header_bytes) : header_bytes_(header_bytes) {}

  /// Starts anew, on a stream of which `rest` has been read already.
  void restart(std::span<const std::uint8_t> rest);

  /// Reads what is there; stops early where frames were completed, for the sake of whoever waits for them.
  StreamStatus pump(Wire& wire, int fd, Frames& frames);

  const std::string& problem() const { return problem_; }

 private:
  std::size_t read(Wire& wire, int fd, std::span<std::byte> guess, StreamStatus* status);
  bool place(std::size_t got, std::span<std::byte> guess, Frames& frames);
  bool begin(Frames& frames);
  bool endIfWhole(Frames& frames);
  bool consume(Frames& frames);
  bool garbled();

  /// Of the present frame, before its payload.
  std::size_t frontBytes() const { return lead_ + header_bytes_; }

  std::size_t header_bytes_;
  std::array<std::byte, 1 + kMaxHeader> front_{};
  std::size_t lead_ = 0;  ///< 1: the pad of the frame before is still to be read
  std::size_t got_ = 0;   ///< bytes of the present frame, its lead included
  std::span<std::byte> payload_;
  std::vector<std::byte> stash_;  ///< what came behind a payload and is not placed yet
  std::size_t stashed_ = 0;
  std::uint64_t completed_ = 0;
  std::string problem_;
};

}  // namespace tutti
