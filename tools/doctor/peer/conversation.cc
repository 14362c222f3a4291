#include "tools/doctor/peer/conversation.h"

#include <fmt/format.h>
#include <poll.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tutti::doctor {
namespace {

constexpr const char* kPurpose = "tutti-doctor ";

Secret secretOf(const std::string& token) {
  const std::string text = kPurpose + token;
  Secret secret{};
  crypto_generichash(secret.data(), secret.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), nullptr, 0);
  return secret;
}

[[noreturn]] void breakOff(const SecureChannel& channel) {
  throw BrokenOff(channel.problem().empty() ? "the other end closed the connection" : channel.problem());
}

}  // namespace

std::string makeToken() {
  std::array<unsigned char, kTokenDigits / 2> bytes{};
  randombytes_buf(bytes.data(), bytes.size());
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool pollOnce(int fd, short events, Clock::time_point deadline) {
  constexpr std::chrono::milliseconds kTick{100};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return false;
  pollfd ready{fd, events, 0};
  ::poll(&ready, 1, static_cast<int>(std::min(left, kTick).count()));
  return true;
}

Conversation::Conversation(UniqueFd socket, const std::string& token, SecureChannel::Role role,
                           std::chrono::milliseconds limit)
    : channel_(std::move(socket), secretOf(token), role) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const bool is_open = channel_.pump();
    if (channel_.established() && !channel_.wantsToWrite()) return;
    if (!is_open) {
      throw BrokenOff(channel_.problem().empty() || role == SecureChannel::Role::server
                          ? "the other end does not know the token, or closed the connection"
                          : channel_.problem());
    }
    const auto events = static_cast<short>(POLLIN | (channel_.wantsToWrite() ? POLLOUT : 0));
    if (!pollOnce(channel_.fd(), events, deadline)) throw BrokenOff("connected, but no doctor answers there");
  }
}

void Conversation::send(const nlohmann::ordered_json& message) {
  const std::string text = message.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  channel_.send({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  channel_.pump();
}

nlohmann::ordered_json Conversation::receive(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const bool is_open = channel_.pump();
    if (const auto message = channel_.receive()) {
      auto json = nlohmann::ordered_json::parse(message->begin(), message->end(), nullptr, false);
      if (json.is_discarded()) throw BrokenOff("what the other doctor says makes no sense");
      return json;
    }
    if (!is_open) breakOff(channel_);
    const auto events = static_cast<short>(POLLIN | (channel_.wantsToWrite() ? POLLOUT : 0));
    if (!pollOnce(channel_.fd(), events, deadline))
      throw BrokenOff(
          fmt::format("the other doctor was silent for {:g} s", static_cast<double>(limit.count()) / 1000));
  }
}

}  // namespace tutti::doctor
