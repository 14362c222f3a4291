#include "transports/tcp/silence.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookAtIdle{100};
constexpr milliseconds kLook{10};
/// Asked so often in vain. A receiver without room answers each time, but is asked after longer and longer
/// pauses.
constexpr unsigned kUnanswered = 2;

}  // namespace

milliseconds Silence::lasts(int socket, Clock::time_point now) {
  if (now < next_look_) return lasted_;
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_unacked == 0) {
    restart();
    next_look_ = now + kLookAtIdle;
    return lasted_;
  }
  next_look_ = now + kLook;
  const Clock::time_point answered = now - milliseconds(info.tcpi_last_ack_recv);
  if (!since_ || answered > *since_ || info.tcpi_retransmits < retransmits_) {
    since_ = since_ ? std::max(answered, *since_) : now;
    retransmits_ = info.tcpi_retransmits;
  }
  const bool is_unanswered = info.tcpi_retransmits - retransmits_ >= kUnanswered;
  lasted_ = is_unanswered ? std::chrono::duration_cast<milliseconds>(now - *since_) : milliseconds(0);
  return lasted_;
}

}  // namespace tutti
