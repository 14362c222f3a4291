// A connection on its way to another rank or to the rendezvous.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"
#include "transports/secure_channel.h"
#include "transports/transport.h"

namespace tutti {

/// Connects and proves the secret. Non-blocking; used by one thread. A connection that ends before the other
/// end has proved itself is tried again: a crowded listener drops whom it does not know yet. When that
/// happens several times at once, it is a refusal.
class Dial {
 public:
  struct Terms {
    NetAddress to;
    Secret secret{};
    Deadline deadline;
    bool waits_for_listener = false;  ///< what may not be up yet is tried until the deadline
  };

  explicit Dial(const Terms& terms);

  /// What to poll before the next pump(); with nothing to poll, or when it isPausing(), within 50 ms.
  void addTo(std::vector<pollfd>& fds) const;
  bool isPausing() const { return !socket_ && !channel_ && !failed_; }
  void pump();

  bool established() const { return channel_ && channel_->established(); }
  bool failed() const { return failed_; }
  /// The errno of the last attempt; 0 when it was another problem.
  int error() const { return error_; }
  /// Why it failed, in words.
  const std::string& problem() const { return problem_; }

  /// Only when established.
  SecureChannel take() { return std::move(*channel_); }

 private:
  using Clock = std::chrono::steady_clock;

  void start();
  void finishConnect();
  void endAttempt(int error, const std::string& problem);

  Terms terms_;
  UniqueFd socket_;                       ///< while it connects
  std::optional<SecureChannel> channel_;  ///< afterwards
  Clock::time_point next_;                ///< when the next attempt is due
  Clock::time_point started_;             ///< when the last one began
  int drops_ = 0;                         ///< attempts that the other end dropped at once
  int attempts_ = 0;
  bool failed_ = false;
  int error_ = 0;
  std::string problem_;
};

/// Polls, for at most `limit`, whatever was gathered.
void pollFor(std::vector<pollfd>& fds, std::chrono::milliseconds limit);

/// Asks whether a listener is there, without saying anything.
class Probe {
 public:
  enum class Answer { pending, present, refused, unknown };

  explicit Probe(const NetAddress& to);
  Answer answer();
  void addTo(std::vector<pollfd>& fds) const;

 private:
  UniqueFd socket_;
  int error_ = 0;
};

}  // namespace tutti
