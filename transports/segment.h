// Memory that several ranks see: mapped once per process, freed with its last user.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace tutti {

/// 16 random bytes that name a segment among all processes that share it.
using SegmentToken = std::array<std::uint8_t, 16>;
SegmentToken randomToken();

/// An anonymous file in memory (memfd), mapped. Zero when created, preallocated (touching it cannot fail),
/// and sealed against resizing, so that no peer can make an access raise SIGBUS.
class Segment {
 public:
  /// Creates `bytes` of memory. Throws Error(ncclSystemError) with the need and the free memory when there is
  /// not enough.
  static std::shared_ptr<Segment> create(const SegmentToken& token, std::size_t bytes);

  /// Maps the memory behind `fd`, which stays the caller's. Throws Error when it is not a sealed segment of
  /// `bytes`.
  static std::shared_ptr<Segment> map(const SegmentToken& token, int fd, std::size_t bytes);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const SegmentToken& token() const { return token_; }
  /// For handing to another process. Owned by the segment; -1 where it was mapped from a peer.
  int fd() const { return fd_; }

 private:
  Segment(const SegmentToken& token, std::byte* data, std::size_t bytes, int fd)
      : token_(token), data_(data), bytes_(bytes), fd_(fd) {}

  SegmentToken token_;
  std::byte* data_;
  std::size_t bytes_;
  int fd_;
};

/// The segments that this process has mapped. Two mappings of one segment would blind ThreadSanitizer and
/// waste address space, so every rank of the process takes its segments from here. Thread-safe.
class SegmentCache {
 public:
  std::shared_ptr<Segment> create(std::size_t bytes);
  /// The segment if it is mapped already, else nullptr.
  std::shared_ptr<Segment> find(const SegmentToken& token);
  /// The segment behind `fd`, mapped unless it is already.
  std::shared_ptr<Segment> map(const SegmentToken& token, int fd, std::size_t bytes);

 private:
  std::mutex mutex_;
  std::map<SegmentToken, std::weak_ptr<Segment>> segments_;
};

}  // namespace tutti
