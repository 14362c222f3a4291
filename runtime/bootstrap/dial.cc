#include "runtime/bootstrap/dial.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/listener.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr int kMostDrops = 7;
constexpr milliseconds kQuick{500};  ///< what is dropped later was not refused: the listener was crowded
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{400};

/// What a host that is still starting may answer.
bool maySolveItself(int error) {
  return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT ||
         error == EHOSTDOWN || error == ECONNRESET;
}

}  // namespace

Dial::Dial(const Terms& terms) : terms_(terms), next_(Clock::now()) {}

void Dial::addTo(std::vector<pollfd>& fds) const {
  if (socket_) fds.push_back({socket_.get(), POLLOUT, 0});
  if (!channel_) return;
  fds.push_back({channel_->fd(), static_cast<short>(POLLIN | (channel_->wantsToWrite() ? POLLOUT : 0)), 0});
}

void Dial::pump() {
  if (failed_ || established()) return;
  if (Clock::now() >= terms_.deadline) {
    failed_ = true;
    if (problem_.empty()) {
      error_ = ETIMEDOUT;
      problem_ = channel_ ? "connected, but nothing answers there" : "no answer in time";
    }
    return;
  }
  if (isPausing() && Clock::now() >= next_) start();
  if (socket_) finishConnect();
  if (channel_ && !channel_->pump() && !established()) {
    const std::string problem = channel_->problem();
    if (Clock::now() - started_ < kQuick) ++drops_;
    endAttempt(0, problem.empty() ? "the other end closed the connection" : problem);
  }
}

void Dial::start() {
  int error = 0;
  started_ = Clock::now();
  socket_ = startConnect(terms_.to, &error);
  if (!socket_) endAttempt(error, std::strerror(error));
}

void Dial::finishConnect() {
  const int result = connectResult(socket_.get());
  if (result == EINPROGRESS) return;
  UniqueFd socket = std::move(socket_);
  if (result != 0) return endAttempt(result, std::strerror(result));
  channel_.emplace(std::move(socket), terms_.secret, SecureChannel::Role::client);
}

void Dial::endAttempt(int error, const std::string& problem) {
  channel_.reset();
  error_ = error;
  problem_ = error != 0 ? fmt::format("{} (errno {})", problem, error) : problem;
  failed_ = error == 0 ? drops_ >= kMostDrops : !(terms_.waits_for_listener && maySolveItself(error));
  // Longer from time to time, and not all ranks at once.
  const auto pause = std::min(kFirstPause * (1 << std::min(attempts_++, 5)), kLongestPause);
  next_ =
      Clock::now() + pause / 2 + milliseconds(randombytes_uniform(static_cast<std::uint32_t>(pause.count())));
}

void pollFor(std::vector<pollfd>& fds, milliseconds limit) {
  ::poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(limit.count(), 0)));
}

Probe::Probe(const NetAddress& to) : socket_(startConnect(to, &error_)) {
  if (!socket_) return;
  // Ends without a trace: thousands of probes must not use up the ports of this host.
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

Probe::Answer Probe::answer() {
  if (socket_) error_ = connectResult(socket_.get());
  switch (error_) {
    case 0:
      return Answer::present;
    case EINPROGRESS:
      return Answer::pending;
    case ECONNREFUSED:
      return Answer::refused;
    default:
      return Answer::unknown;
  }
}

void Probe::addTo(std::vector<pollfd>& fds) const {
  if (socket_) fds.push_back({socket_.get(), POLLOUT, 0});
}

}  // namespace tutti
