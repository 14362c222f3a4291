// One output stream of one rank: from its pipe, line by line, to the launcher's output.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/run/output_queue.h"
#include "tools/run/unique_fd.h"

namespace tutti::run {

/// Reads a pipe and queues whole lines, each behind `prefix`. Bytes are passed on as they are; a line ends
/// with "\n", "\r\n" or "\r". Longer lines than kMaxLineBytes are split, and a last line without an end gets
/// a newline.
class RankStream {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

  /// Owns `pipe`, which must be non-blocking; `queue` must outlive the object.
  RankStream(UniqueFd pipe, Stream stream, std::string prefix, OutputQueue& queue);

  int fd() const { return pipe_.get(); }
  bool open() const { return static_cast<bool>(pipe_); }

  /// Queues what is in the pipe, at most one buffer; closes at the end of file, or when nobody reads the
  /// launcher's output any more (the rank then gets SIGPIPE, as without a launcher). False when there was
  /// nothing to read for now, or the stream is closed.
  bool read();

  /// Queues what is left in the pipe and closes it.
  void finish();

 private:
  void add(std::string_view bytes);
  void addLine(std::string_view end_of_line);
  void close();

  UniqueFd pipe_;
  Stream stream_;
  std::string prefix_;
  OutputQueue& queue_;
  std::string partial_;    ///< the beginning of a line whose end has not come
  bool after_cr_ = false;  ///< the last line ended with '\r': a '\n' that follows belongs to it
};

}  // namespace tutti::run
