// The door of a listener: strangers prove themselves here, a few at a time, and delay nobody.
#pragma once

#include <poll.h>

#include <chrono>
#include <list>
#include <vector>

#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"
#include "transports/secure_channel.h"

namespace tutti {

/// Who proved to know the secret, and the first thing it said.
struct Guest {
  SecureChannel channel;
  Bytes greeting;
};

/// Non-blocking; used by one thread. At most `most` strangers are held; further ones wait in the backlog. One
/// that has not proved itself within a few seconds is dropped, and when others wait, the oldest sooner. Who
/// has proved itself is crowded out by nobody, and may be slow to speak.
class Reception {
 public:
  Reception() = default;
  Reception(UniqueFd listener, const Secret& secret, std::size_t most);

  bool isOpen() const { return static_cast<bool>(listener_); }
  bool isEmpty() const { return strangers_.empty(); }

  /// What to poll before the next attend(). At least every 100 ms it is due anyway unless it isEmpty().
  void addTo(std::vector<pollfd>& fds) const;

  /// Accepts, reads, drops; returns those who have proved themselves and spoken.
  std::vector<Guest> attend();

  /// Holds fewer from now on.
  void limit(std::size_t most) { most_ = most; }

  /// Drops everybody and gives the listener away.
  UniqueFd takeListener();

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    SecureChannel channel;
    Clock::time_point since;
  };

  /// The one that has not proved itself for longest; none: everybody has.
  std::list<Stranger>::const_iterator oldestUnproven() const;
  std::size_t unproven() const;
  bool hasRoom() const;
  void acceptAll();

  UniqueFd listener_;
  Secret secret_{};
  std::size_t most_ = 0;
  std::list<Stranger> strangers_;  ///< oldest first; also who has proved itself, until it speaks
};

}  // namespace tutti
