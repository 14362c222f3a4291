// Memory that several ranks see: mapped once per process, freed with its last user.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/core/unique_fd.h"

namespace tutti {

/// 16 random bytes that name a segment among all processes that share it.
using SegmentToken = std::array<std::uint8_t, 16>;
SegmentToken randomToken();

/// An anonymous file in memory (memfd), mapped. Zero when created, and sealed against resizing, so that no
/// peer can make an access to memory that was reserved raise SIGBUS.
class Segment {
 public:
  /// Creates `bytes` of memory, none of it allocated: reserve() does that. Throws Error(ncclSystemError) with
  /// the need and the free memory when there is not enough.
  static std::shared_ptr<Segment> create(const SegmentToken& token, std::size_t bytes);

  /// Maps the memory behind `fd`. Throws Error when it is not a sealed segment of `bytes`.
  static std::shared_ptr<Segment> map(const SegmentToken& token, UniqueFd fd, std::size_t bytes);

  /// Allocates the pages of a range, near the calling thread; touching them cannot fail afterwards. Throws
  /// Error when there is not enough memory.
  void reserve(std::size_t offset, std::size_t bytes);

  /// The descriptor is needed no longer: it does not count against the limit of open files then.
  void closeFd() { fd_ = {}; }

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const SegmentToken& token() const { return token_; }
  /// For handing to another process. Owned by the segment; -1 after closeFd().
  int fd() const { return fd_.get(); }

 private:
  Segment(const SegmentToken& token, std::byte* data, std::size_t bytes, UniqueFd fd)
      : token_(token), data_(data), bytes_(bytes), fd_(std::move(fd)) {}

  SegmentToken token_;
  std::byte* data_;
  std::size_t bytes_;
  UniqueFd fd_;
};

/// The segments that this process has mapped. Two mappings of one segment would blind ThreadSanitizer and
/// waste address space, so every rank of the process takes its segments from here. Thread-safe.
class SegmentCache {
 public:
  /// A new segment; see Segment::create.
  std::shared_ptr<Segment> create(std::size_t bytes);
  /// The segment if it is mapped already, else nullptr.
  std::shared_ptr<Segment> find(const SegmentToken& token);
  /// The segment behind `fd`, mapped unless it is already. `keeps_fd`: whether one that is mapped now keeps
  /// it open.
  std::shared_ptr<Segment> map(const SegmentToken& token, UniqueFd fd, std::size_t bytes, bool keeps_fd);

 private:
  std::mutex mutex_;
  std::map<SegmentToken, std::weak_ptr<Segment>> segments_;
};

}  // namespace tutti
