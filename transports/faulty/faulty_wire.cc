#include "transports/faulty/faulty_wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

namespace tutti {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::size_t bytesOf(const msghdr& message) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < message.msg_iovlen; ++i) bytes += message.msg_iov[i].iov_len;
  return bytes;
}

}  // namespace

std::uint64_t faultDistance(std::uint64_t every, std::mt19937_64* random) {
  return random != nullptr ? std::uniform_int_distribution<std::uint64_t>(1, 2 * every - 1)(*random) : every;
}

FaultyWire::FaultyWire(std::unique_ptr<Wire> wire, const FaultPlan& plan) : wire_(std::move(wire)) {
  if (plan.seed) random_.emplace(*plan.seed);
  for (const Fault& fault : plan.faults) {
    Active active{.fault = fault, .next = fault.at.value_or(kNever), .until = {}};
    if (fault.every) schedule(active, 0);
    faults_.push_back(active);
  }
}

/// The next occurrence after one at `from`.
void FaultyWire::schedule(Active& active, std::uint64_t from) {
  active.until.reset();
  active.next = kNever;
  if (!active.fault.every) return;
  active.next = from + faultDistance(*active.fault.every, random_ ? &*random_ : nullptr);
}

bool FaultyWire::isDelayed(const Active& active, int fd) {
  const auto now = Clock::now();
  const auto [entry, is_new] = delays_.try_emplace(fd, now + *active.fault.time);
  if (now < entry->second) return true;
  delays_.erase(entry);
  return false;
}

bool FaultyWire::isStalled(Active& active) {
  if (active.next != position_) return false;
  if (!active.fault.time) return true;
  const auto now = Clock::now();
  if (!active.until) active.until = now + *active.fault.time;
  if (now < *active.until) return true;
  schedule(active, position_);
  return false;
}

ssize_t FaultyWire::send(int fd, const msghdr& message) {
  std::size_t bytes = bytesOf(message);
  for (Active& active : faults_) {
    const bool waits = active.fault.kind == Fault::Kind::delay   ? isDelayed(active, fd)
                       : active.fault.kind == Fault::Kind::stall ? isStalled(active)
                                                                 : false;
    if (waits) {
      errno = EAGAIN;
      return -1;
    }
    if (active.fault.kind == Fault::Kind::cut && active.next == position_) {
      schedule(active, position_);
      // Closed in this state, the socket sends a reset and forgets what it had not sent.
      const linger abort{.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
      errno = ECONNRESET;
      return -1;
    }
    // Up to the next fault at most.
    const bool has_place = active.fault.kind != Fault::Kind::corrupt && active.next > position_;
    if (has_place) bytes = std::min<std::uint64_t>(bytes, active.next - position_);
  }
  const ssize_t put = sendPart(fd, message, bytes);
  if (put > 0) position_ += static_cast<std::uint64_t>(put);
  for (Active& active : faults_) {
    if (active.fault.kind == Fault::Kind::corrupt && active.next < position_) schedule(active, position_);
  }
  return put;
}

/// The first `bytes` of the message, with a bit turned over where a fault wants it.
ssize_t FaultyWire::sendPart(int fd, const msghdr& message, std::size_t bytes) {
  std::vector<std::byte> copy;
  copy.reserve(bytes);
  for (std::size_t i = 0; i < message.msg_iovlen && copy.size() < bytes; ++i) {
    const auto* from = static_cast<const std::byte*>(message.msg_iov[i].iov_base);
    const std::size_t take = std::min(message.msg_iov[i].iov_len, bytes - copy.size());
    copy.insert(copy.end(), from, from + take);
  }
  for (const Active& active : faults_) {
    if (active.fault.kind != Fault::Kind::corrupt || active.next < position_) continue;
    const std::uint64_t at = active.next - position_;
    if (at < copy.size()) copy[at] ^= std::byte{0x10};
  }
  iovec part{copy.data(), copy.size()};
  msghdr changed{};
  changed.msg_iov = &part;
  changed.msg_iovlen = 1;
  return wire_->send(fd, changed);
}

}  // namespace tutti
