// What is still to be written to the launcher's standard output and error.
#pragma once

#include <array>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::run {

enum class Stream { out, err };

/// Whole lines for both streams. Each stream has its lane, so that one with a stalled reader does not hold
/// the other; when both are the same file they share one, so that lines stay whole and in order there, too.
/// Never blocks, so that a stalled reader cannot keep the launcher from its signals, and leaves the
/// descriptors' flags alone, which other processes share.
class OutputQueue {
 public:
  OutputQueue();

  /// Appends the concatenation of `parts`. Dropped when the stream's reader is gone.
  void add(Stream stream, std::initializer_list<std::string_view> parts);

  /// Writes what the descriptors take now.
  void flush();

  bool empty() const { return lanes_[0].blocks.empty() && lanes_[1].blocks.empty(); }
  /// Producers for this stream should wait. add() still works.
  bool full(Stream stream) const { return lanes_[laneOf(stream)].bytes >= kFullBytes; }
  /// The descriptors that flush() waits for.
  std::vector<int> blockedFds() const;
  /// Writing has failed, mostly because the reader is gone.
  bool closed(Stream stream) const { return errors_[indexOf(stream)] != 0; }
  /// errno of what was lost although its reader is there; 0: nothing.
  int lost(Stream stream) const {
    const int error = errors_[indexOf(stream)];
    return error == EPIPE ? 0 : error;
  }

 private:
  struct Block {
    Stream stream;
    std::string text;
  };
  struct Lane {
    std::deque<Block> blocks;
    std::size_t written = 0;  ///< of the first block
    std::size_t bytes = 0;    ///< in all blocks, written or not
  };
  static constexpr std::size_t kFullBytes = std::size_t{1} << 20;
  static constexpr std::size_t kBlockBytes = std::size_t{1} << 16;

  static std::size_t indexOf(Stream stream) { return static_cast<std::size_t>(stream); }
  std::size_t laneOf(Stream stream) const { return same_file_ ? 0 : indexOf(stream); }
  bool writeSome(Lane& lane);
  void close(Lane& lane, Stream stream, int error);

  bool same_file_;
  std::array<Lane, 2> lanes_;
  std::array<int, 2> errors_{};  ///< errno; 0: the stream is open
};

}  // namespace tutti::run
