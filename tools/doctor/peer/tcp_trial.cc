#include "tools/doctor/peer/tcp_trial.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "tools/doctor/peer/conversation.h"
#include "transports/listener.h"
#include "transports/socket_address.h"
#include "transports/tcp/sockets.h"

namespace tutti::doctor {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectLimit{3000};
constexpr milliseconds kAnswerLimit{3000};
constexpr milliseconds kKeyLimit{2000};
constexpr milliseconds kIdleLimit{5000};
constexpr milliseconds kBandwidthTime{500};
constexpr std::uint64_t kMostFrame = 1U << 20;
constexpr std::uint64_t kLargeFrame = 1U << 18;
constexpr std::uint64_t kSmallFrame = 8;
constexpr int kRoundTrips = 100;
constexpr int kWindow = 8;  ///< large frames under way

/// All of it, or false: at the deadline (then errno is ETIMEDOUT), at the end of the connection, or when
/// `is_over`.
bool receiveAll(int socket, std::span<std::uint8_t> to, Clock::time_point deadline,
                const std::atomic<bool>* is_over = nullptr) {
  while (!to.empty()) {
    const ssize_t got = ::recv(socket, to.data(), to.size(), MSG_DONTWAIT);
    if (got > 0) {
      to = to.subspan(static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0) errno = ECONNRESET;
    if (errno != EAGAIN && errno != EINTR) return false;
    if (is_over != nullptr && *is_over) return false;
    if (!pollOnce(socket, POLLIN, deadline)) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

bool sendAll(int socket, std::span<const std::uint8_t> from, Clock::time_point deadline) {
  while (!from.empty()) {
    const ssize_t put = ::send(socket, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) {
      from = from.subspan(static_cast<std::size_t>(put));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    if (!pollOnce(socket, POLLOUT, deadline)) {
      errno = ETIMEDOUT;
      return false;
    }
  }
  return true;
}

/// The dialer's side of a connection.
class Dialer {
 public:
  explicit Dialer(int socket) : socket_(socket), frame_(sizeof(std::uint64_t) + kLargeFrame) {}

  bool sendFrame(std::uint64_t bytes) {
    std::memcpy(frame_.data(), &bytes, sizeof(bytes));
    return sendAll(socket_, std::span(frame_).first(sizeof(bytes) + bytes), Clock::now() + kAnswerLimit);
  }
  bool receiveAnswer() const {
    std::array<std::uint8_t, 8> answer{};
    return receiveAll(socket_, answer, Clock::now() + kAnswerLimit);
  }

  /// Median of many; nothing where an answer stays out.
  std::optional<double> roundTrip() {
    std::vector<double> times;
    for (int i = 0; i < kRoundTrips; ++i) {
      const auto start = Clock::now();
      if (!sendFrame(kSmallFrame) || !receiveAnswer()) return std::nullopt;
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    std::ranges::nth_element(times, times.begin() + kRoundTrips / 2);
    return times[kRoundTrips / 2];
  }

  /// Gigabits per second; nothing where an answer stays out.
  std::optional<double> bandwidth() {
    std::uint64_t sent = 0;
    std::uint64_t answered = 0;
    const auto start = Clock::now();
    const auto end = start + kBandwidthTime;
    while (Clock::now() < end || answered < sent) {
      if (Clock::now() < end && sent - answered < kWindow) {
        if (!sendFrame(kLargeFrame)) return std::nullopt;
        ++sent;
      } else {
        if (!receiveAnswer()) return std::nullopt;
        ++answered;
      }
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return static_cast<double>(answered * kLargeFrame) * 8 / 1e9 / seconds;
  }

 private:
  int socket_;
  std::vector<std::uint8_t> frame_;
};

TcpOutcome outcomeOf(int error) {
  switch (error) {
    case ENETUNREACH:
    case EHOSTUNREACH:
      return TcpOutcome::no_route;
    case ETIMEDOUT:
      return TcpOutcome::no_answer;
    case ECONNREFUSED:
      return TcpOutcome::refused;
    default:
      return TcpOutcome::failed;
  }
}

/// 0, or an errno; ETIMEDOUT after kConnectLimit.
int connectTo(const NetAddress& to, UniqueFd& socket) {
  const auto deadline = Clock::now() + kConnectLimit;
  int error = 0;
  socket = startConnect(to, &error);
  if (!socket) return error;
  while ((error = connectResult(socket.get())) == EINPROGRESS) {
    if (!pollOnce(socket.get(), POLLOUT, deadline)) return ETIMEDOUT;
  }
  return error;
}

void askSystem(int socket, TcpTrial& trial) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
  trial.segments = info.tcpi_segs_out;
  trial.sent_again = info.tcpi_total_retrans;
}

}  // namespace

DataKey makeDataKey() {
  DataKey key{};
  randombytes_buf(key.data(), key.size());
  return key;
}

DataServer::DataServer(UniqueFd listener, const DataKey& key)
    : listener_(std::move(listener)), key_(key), thread_([this] { run(); }) {}

DataServer::~DataServer() {
  is_over_ = true;
  thread_.join();
}

void DataServer::run() {
  while (!is_over_) {
    pollOnce(listener_.get(), POLLIN, Clock::now() + kIdleLimit);
    const UniqueFd socket = acceptFrom(listener_.get());
    if (socket) serve(socket.get());
  }
}

void DataServer::serve(int socket) const {
  tune(socket);
  DataKey key{};
  if (!receiveAll(socket, key, Clock::now() + kKeyLimit, &is_over_) ||
      sodium_memcmp(key.data(), key_.data(), key.size()) != 0)
    return;
  std::vector<std::uint8_t> room(kMostFrame);
  std::array<std::uint8_t, 8> head{};
  while (receiveAll(socket, head, Clock::now() + kIdleLimit, &is_over_)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, head.data(), sizeof(bytes));
    if (bytes > kMostFrame) return;
    if (!receiveAll(socket, std::span(room).first(bytes), Clock::now() + kIdleLimit, &is_over_)) return;
    if (!sendAll(socket, head, Clock::now() + kIdleLimit)) return;
  }
}

TcpTrial tryTcp(const NetAddress& to, const DataKey& key) {
  TcpTrial trial;
  UniqueFd socket;
  if (const int error = connectTo(to, socket); error != 0) {
    trial.outcome = outcomeOf(error);
    trial.words = std::strerror(error);
    return trial;
  }
  tune(socket.get());
  trial.left_by = hostText(localAddress(socket.get()));
  Dialer dialer(socket.get());
  trial.outcome = TcpOutcome::stranger;
  if (!sendAll(socket.get(), key, Clock::now() + kAnswerLimit)) return trial;
  const auto round_trip = dialer.roundTrip();
  if (!round_trip) return trial;
  trial.round_trip_us = *round_trip;
  const bool large_passes = dialer.sendFrame(kLargeFrame) && dialer.receiveAnswer();
  const auto gbps = large_passes ? dialer.bandwidth() : std::nullopt;
  const int error = errno;
  askSystem(socket.get(), trial);
  if (!gbps) {
    trial.outcome = !large_passes && error == ETIMEDOUT ? TcpOutcome::stalls : TcpOutcome::cut;
    trial.words = std::strerror(error);
    return trial;
  }
  trial.gbps = *gbps;
  trial.outcome = TcpOutcome::ok;
  return trial;
}

}  // namespace tutti::doctor
