#include "tools/run/output_queue.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace tutti::run {
namespace {

int fdOf(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

bool sameFile(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

OutputQueue::OutputQueue() : same_file_(sameFile(STDOUT_FILENO, STDERR_FILENO)) {}

void OutputQueue::add(Stream stream, std::initializer_list<std::string_view> parts) {
  if (closed(stream)) return;
  auto& lane = lanes_[laneOf(stream)];
  auto& blocks = lane.blocks;
  if (blocks.empty() || blocks.back().stream != stream || blocks.back().text.size() >= kBlockBytes) {
    blocks.push_back({stream, {}});
  }
  for (const auto part : parts) {
    blocks.back().text.append(part);
    lane.bytes += part.size();
  }
}

void OutputQueue::flush() {
  for (auto& lane : lanes_) {
    while (!lane.blocks.empty() && writeSome(lane)) {
    }
  }
}

std::vector<int> OutputQueue::blockedFds() const {
  std::vector<int> result;
  for (const auto& lane : lanes_) {
    if (!lane.blocks.empty()) result.push_back(fdOf(lane.blocks.front().stream));
  }
  return result;
}

bool OutputQueue::writeSome(Lane& lane) {
  const auto& [stream, text] = lane.blocks.front();
  const int fd = fdOf(stream);
  pollfd ready{fd, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return false;
  // A pipe that polls writable takes PIPE_BUF bytes without blocking, not more.
  const auto size = std::min<std::size_t>(text.size() - lane.written, PIPE_BUF);
  const ssize_t done = ::write(fd, text.data() + lane.written, size);
  if (done < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    close(lane, stream, errno);
    return true;
  }
  lane.written += static_cast<std::size_t>(done);
  if (lane.written == text.size()) {
    lane.bytes -= text.size();
    lane.written = 0;
    lane.blocks.pop_front();
  }
  return true;
}

void OutputQueue::close(Lane& lane, Stream stream, int error) {
  errors_[indexOf(stream)] = error;
  std::erase_if(lane.blocks, [stream](const Block& block) { return block.stream == stream; });
  lane.written = 0;  // the block that was begun is one of those
  lane.bytes = 0;
  for (const auto& block : lane.blocks) lane.bytes += block.text.size();
}

}  // namespace tutti::run
