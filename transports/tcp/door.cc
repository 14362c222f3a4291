#include "transports/tcp/door.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transports/tcp/sockets.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxStrangers = 64;
constexpr std::chrono::seconds kTimeToProve{10};
/// Under a flood the oldest stranger makes room, but every one gets this long. The others wait in the
/// kernel's queue.
constexpr std::chrono::milliseconds kGrace{100};

}  // namespace

Door::Door(const LinkContext& context, UniqueFd listener, std::uint64_t token, Find find)
    : context_(context),
      listener_(std::move(listener)),
      token_(token),
      next_token_(token + 1),
      find_(std::move(find)) {
  if (listener_) watch(context_.epoll, listener_.get(), token_);
}

void Door::wake(std::uint64_t token) {
  has_news_ = true;
  if (token == token_) is_knocking_ = true;
  for (const auto& stranger : strangers_) {
    if (stranger->token == token) stranger->has_news = true;
  }
}

void Door::tend(Clock::time_point now) {
  if (is_knocking_) acceptAll(now);
  has_news_ = is_knocking_;
  std::erase_if(strangers_, [&](const std::unique_ptr<Stranger>& stranger) {
    if (now - stranger->since > kTimeToProve) return true;
    return stranger->has_news && !advance(*stranger, now);
  });
}

bool Door::makeRoom(Clock::time_point now) {
  if (strangers_.size() < kMaxStrangers) return true;
  if (now - strangers_.front()->since < kGrace) return false;
  strangers_.erase(strangers_.begin());
  return true;
}

void Door::acceptAll(Clock::time_point now) {
  while (listener_ && makeRoom(now)) {
    UniqueFd socket = acceptFrom(listener_.get());
    if (!socket) {
      // Out of descriptors or memory: tries again at the next pass.
      is_knocking_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      return;
    }
    const std::uint64_t token = next_token_++;
    if (!watch(context_.epoll, socket.get(), token)) continue;
    strangers_.push_back(std::make_unique<Stranger>(
        Stranger{.token = token,
                 .since = now,
                 .channel = SecureChannel(std::move(socket), context_.secret, SecureChannel::Role::server)}));
  }
}

/// Goes on with a stranger. False: it is one no more.
bool Door::advance(Stranger& stranger, Clock::time_point now) {
  stranger.has_news = false;
  SecureChannel& channel = stranger.channel;
  const bool is_usable = channel.pump();
  if (stranger.link == nullptr && channel.established()) {
    if (const auto message = channel.receive()) {
      const auto hello = fromBytes<Hello>(*message);
      stranger.link = hello && hello->to == context_.rank ? find_(*hello) : nullptr;
      const auto answer = stranger.link != nullptr ? stranger.link->fence(*hello, now) : std::nullopt;
      if (!answer) return false;
      stranger.epoch = hello->epoch;
      channel.send(toBytes(*answer));
      if (!channel.pump()) return false;
    }
  }
  if (!is_usable) return false;
  if (stranger.link == nullptr || channel.wantsToWrite()) return true;
  Bytes rest;
  UniqueFd socket = channel.takeSocket(&rest);
  stranger.link->attach(std::move(socket), rest, stranger.epoch, now);
  return false;
}

void Door::close() {
  strangers_.clear();
  listener_ = {};
  has_news_ = is_knocking_ = false;
}

}  // namespace tutti
