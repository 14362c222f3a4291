// Two doctors talk: JSON messages over a channel that is proved and encrypted by the listener's token.
#pragma once

#include <chrono>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "transports/secure_channel.h"

namespace tutti::doctor {

using Clock = std::chrono::steady_clock;

/// The conversation is over before its end, in words.
class BrokenOff : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// 96 random bits, in hexadecimal, that whoever is to take part has to know.
std::string makeToken();
inline constexpr std::size_t kTokenDigits = 24;

/// Waits for descriptors by at most 100 ms, and not beyond the deadline. False once that has passed.
bool pollOnce(int fd, short events, Clock::time_point deadline);

class Conversation {
 public:
  /// Over a connected socket. Throws BrokenOff where the other end has not proved that it knows the token
  /// within `limit`.
  Conversation(UniqueFd socket, const std::string& token, SecureChannel::Role role,
               std::chrono::milliseconds limit);

  /// Does not tell whether the other end is still there: what it said before it left is yet to be received.
  void send(const nlohmann::ordered_json& message);
  /// Throws BrokenOff once the other end has left and nothing is left of what it said, or after `limit`.
  nlohmann::ordered_json receive(std::chrono::milliseconds limit = std::chrono::seconds(20));

  int fd() const { return channel_.fd(); }

 private:
  SecureChannel channel_;
};

}  // namespace tutti::doctor
