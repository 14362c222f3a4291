// What the two kinds of link ends share: the network that they belong to.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/core/net_address.h"
#include "transports/secure_channel.h"
#include "transports/wire.h"

namespace tutti {

using Clock = std::chrono::steady_clock;

/// Outlives the links; the same for all of them.
struct LinkContext {
  Wire& wire;
  const Secret& secret;
  int epoll;  ///< every socket is watched here, edge-triggered, under the token of its link
  int rank;
  bool checksums;
  std::atomic<std::uint64_t>& altered;  ///< slots and results whose checksum was wrong, of all links
  std::chrono::milliseconds recovery;
  /// Whether the peer has left or died: nothing of it is missed any more.
  std::function<bool(int peer)> is_retired;
  /// A link cannot be healed.
  std::function<void(const std::string&)> fail;
  std::function<void(const std::string&)> note;  ///< something that people may want to know; may be empty
};

/// Whom a link is with, for messages.
struct LinkPeer {
  int rank = -1;
  std::uint32_t lane = 0;
  NetAddress address;
  std::string name;
};

/// How long a link has been without a connection that is good for anything. A connection that lived for a
/// second, or on which something was moved, was good.
class Trouble {
 public:
  /// A connection is wanted now, or was lost.
  void begin(Clock::time_point now) {
    const bool was_good = progressed_ || (opened_ && now - *opened_ >= kGood);
    if (!since_ || was_good) since_ = now;
    progressed_ = false;
    opened_.reset();
  }
  void opened(Clock::time_point now) { opened_ = now; }
  void progress() { progressed_ = true; }
  bool exceeds(std::chrono::milliseconds limit, Clock::time_point now) const {
    return since_ && now - *since_ > limit;
  }

 private:
  static constexpr std::chrono::seconds kGood{1};

  std::optional<Clock::time_point> since_;
  std::optional<Clock::time_point> opened_;
  bool progressed_ = false;
};

/// A rank that ends waits no longer than this for a peer that is gone, as far as can be seen: its host
/// refuses connections to it, or it does not dial again.
inline constexpr std::chrono::milliseconds kFarewell{700};

/// Tells epoll of a socket. Again for one that is known gives it another token and reports what it has now.
bool watch(int epoll, int socket, std::uint64_t token);

}  // namespace tutti
