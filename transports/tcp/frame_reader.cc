#include "transports/tcp/frame_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti {
namespace {

// Frames of which nothing is known in advance, such as credits, are read many at a time, by way of the stash.
// Of others no more is read than what is expected: the pad behind a frame has to stay.
constexpr std::size_t kStashBytes = 4096;

}  // namespace

void FrameReader::restart(std::span<const std::uint8_t> rest) {
  lead_ = 0;
  got_ = 0;
  payload_ = {};
  stash_.resize(std::max(kStashBytes, rest.size()));
  if (!rest.empty()) std::memcpy(stash_.data(), rest.data(), rest.size());
  stashed_ = rest.size();
}

bool FrameReader::garbled() {
  if (problem_.empty()) problem_ = "what arrived was altered on its way";
  return false;
}

StreamStatus FrameReader::pump(Wire& wire, int fd, Frames& frames) {
  problem_.clear();
  const std::uint64_t before = completed_;
  if (stashed_ != 0 && !consume(frames)) return StreamStatus::broken;
  for (;;) {
    if (completed_ != before) return StreamStatus::more;
    const std::span<std::byte> guess = got_ < frontBytes() ? frames.expected() : std::span<std::byte>{};
    StreamStatus status = StreamStatus::more;
    const std::size_t got = read(wire, fd, guess, &status);
    if (status != StreamStatus::more) return status;
    if (!place(got, guess, frames) || !consume(frames)) {
      garbled();
      return StreamStatus::broken;
    }
  }
}

/// One call. Into the header, the payload's place and the stash; or into the rest of a payload.
std::size_t FrameReader::read(Wire& wire, int fd, std::span<std::byte> guess, StreamStatus* status) {
  std::array<iovec, 3> parts;
  std::size_t count = 0;
  const auto add = [&](std::byte* to, std::size_t bytes) {
    if (bytes == 0) return;
    parts[count++] = {to, bytes};
  };
  if (got_ < frontBytes()) {
    add(front_.data() + got_, frontBytes() - got_);
    add(guess.data(), guess.size());
    if (guess.empty()) add(stash_.data(), stash_.size());
  } else {
    const std::size_t done = got_ - frontBytes();
    add(payload_.data() + done, payload_.size() - done);
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  ssize_t got = 0;
  do got = wire.receive(fd, message);
  while (got < 0 && errno == EINTR);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) {
    *status = StreamStatus::ended;
  } else if (errno == EAGAIN) {
    *status = StreamStatus::blocked;
  } else {
    problem_ = fmt::format("{} (errno {})", std::strerror(errno), errno);
    *status = StreamStatus::broken;
  }
  return 0;
}

/// Accounts for the bytes of one call.
bool FrameReader::place(std::size_t got, std::span<std::byte> guess, Frames& frames) {
  if (got_ >= frontBytes()) {
    got_ += got;
    return endIfWhole(frames);
  }
  const std::size_t of_header = std::min(got, frontBytes() - got_);
  got_ += of_header;
  got -= of_header;
  if (got_ < frontBytes()) return true;
  std::size_t direct = std::min(got, guess.size());
  stashed_ = got - direct;
  if (!begin(frames)) return false;
  if (direct > payload_.size()) {
    // The payload was shorter than its place: what lies behind it comes before what is in the stash.
    const std::size_t excess = direct - payload_.size();
    const std::byte* behind = guess.data() + payload_.size();
    if (stash_.size() < excess + stashed_) stash_.resize(excess + stashed_);
    std::memmove(stash_.data() + excess, stash_.data(), stashed_);
    std::memcpy(stash_.data(), behind, excess);
    stashed_ += excess;
    direct = payload_.size();
  } else if (direct != 0 && payload_.data() != guess.data()) {
    return false;
  }
  got_ += direct;
  return endIfWhole(frames);
}

bool FrameReader::begin(Frames& frames) { return frames.begin(front_.data() + lead_, &payload_); }

bool FrameReader::endIfWhole(Frames& frames) {
  if (got_ != frontBytes() + payload_.size()) return true;
  if (!frames.end()) return false;
  lead_ = 1;
  got_ = 0;
  payload_ = {};
  ++completed_;
  return true;
}

/// Places all that is in the stash.
bool FrameReader::consume(Frames& frames) {
  std::size_t at = 0;
  while (at < stashed_) {
    const bool is_header = got_ < frontBytes();
    std::byte* to = is_header ? front_.data() + got_ : payload_.data() + (got_ - frontBytes());
    const std::size_t missing = (is_header ? frontBytes() : frontBytes() + payload_.size()) - got_;
    const std::size_t take = std::min(missing, stashed_ - at);
    if (take != 0) std::memcpy(to, stash_.data() + at, take);
    at += take;
    got_ += take;
    if (got_ < frontBytes()) break;
    if (is_header && !begin(frames)) return garbled();
    if (!endIfWhole(frames)) return garbled();
  }
  stashed_ = 0;
  return true;
}

}  // namespace tutti
