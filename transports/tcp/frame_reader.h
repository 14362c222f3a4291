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

  std::size_t header_bytes_;
  alignas(8) std::array<std::byte, kMaxHeader> header_{};
  std::size_t got_ = 0;  ///< bytes of the present frame
  std::span<std::byte> payload_;
  std::vector<std::byte> stash_;  ///< what came behind a payload and is not placed yet
  std::size_t stashed_ = 0;
  std::uint64_t completed_ = 0;
  std::size_t asked_ = 0;  ///< bytes that the last call had room for
  std::string problem_;
};

}  // namespace tutti
