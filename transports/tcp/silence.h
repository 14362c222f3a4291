// Notices a connection on which nothing is acknowledged any more.
#pragma once

#include <chrono>
#include <optional>

namespace tutti {

/// Of one TCP connection, whose kernel knows what is on its way to the peer. A peer that is stopped is not
/// silent: its kernel acknowledges what it has room for, and answers when it is asked again.
class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  /// A connection that was made just now.
  void restart() { *this = {}; }
  /// For how long something has been on its way without an answer of any kind, though it was sent again. Asks
  /// the kernel now and then only.
  std::chrono::milliseconds lasts(int socket, Clock::time_point now);
  /// When the kernel was last asked, something was on its way.
  bool isPossible() const { return since_.has_value(); }

 private:
  std::optional<Clock::time_point> since_;  ///< sent or answered, whatever was later
  unsigned retransmits_ = 0;                ///< then
  std::chrono::milliseconds lasted_{0};
  Clock::time_point next_look_{};
};

/// A connection that is silent for so long is broken, whatever the kernel's own retries make of it.
inline constexpr std::chrono::milliseconds kSilenceOfTcp{2000};

}  // namespace tutti
