#include "tools/run/rank_stream.h"

#include <array>
#include <cerrno>
#include <utility>

namespace tutti::run {

RankStream::RankStream(UniqueFd pipe, Stream stream, std::string prefix, OutputQueue& queue)
    : pipe_(std::move(pipe)), stream_(stream), prefix_(std::move(prefix)), queue_(queue) {}

bool RankStream::read() {
  if (!open()) return false;
  if (queue_.closed(stream_)) {
    close();
    return false;
  }
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
  if (got > 0) {
    add({buffer.data(), static_cast<std::size_t>(got)});
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  close();
  return false;
}

void RankStream::finish() {
  while (read()) {
  }
  close();
}

void RankStream::add(std::string_view bytes) {
  if (after_cr_ && bytes.front() == '\n') {
    queue_.add(stream_, {"\n"});
    bytes.remove_prefix(1);
  }
  after_cr_ = false;
  while (!bytes.empty()) {
    const auto room = kMaxLineBytes - partial_.size();
    const auto end = bytes.substr(0, room).find_first_of("\r\n");
    if (end != std::string_view::npos) {
      const auto size = end + (bytes.substr(end).starts_with("\r\n") ? 2U : 1U);
      addLine(bytes.substr(0, size));
      after_cr_ = size == bytes.size() && bytes.back() == '\r';
      bytes.remove_prefix(size);
      continue;
    }
    const auto taken = bytes.substr(0, room);
    partial_ += taken;
    bytes.remove_prefix(taken.size());
    if (partial_.size() == kMaxLineBytes) addLine("\n");
  }
}

void RankStream::addLine(std::string_view end_of_line) {
  queue_.add(stream_, {prefix_, partial_, end_of_line});
  partial_.clear();
}

void RankStream::close() {
  if (!partial_.empty()) addLine("\n");
  pipe_.reset();
}

}  // namespace tutti::run
