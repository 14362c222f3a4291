// What devices report when something is wrong, in words for people: what it means, and what to look at.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <optional>
#include <string>

namespace tutti {

/// Of a completion: "no acknowledgement after all retries (IBV_WC_RETRY_EXC_ERR): is the peer's port up,
/// ...". Never empty, also for a status that no header knew.
std::string explain(ibv_wc_status status);

/// Of a connection on which nothing was acknowledged for so long, though something was to be.
std::string explainSilence(std::chrono::milliseconds limit);

/// Of the failures of one connection, what tells why: the first that is more than "failed before".
inline ibv_wc_status causeOf(std::optional<ibv_wc_status> before, ibv_wc_status next) {
  return before && *before != IBV_WC_WR_FLUSH_ERR ? *before : next;
}

/// What an event means for connections.
enum class EventEffect {
  none,          ///< they go on
  pairs_lost,    ///< one that uses these queue pairs is of no use any more
  port_lost,     ///< all that use the port
  port_back,     ///< the port can be used again
  port_changed,  ///< they go on while they can; new ones find other addresses
  device_lost,   ///< all that use the device
};
EventEffect effectOf(ibv_event_type type);

/// "the port went down (IBV_EVENT_PORT_ERR): is the cable in, ...". Never empty.
std::string explain(ibv_event_type type);

}  // namespace tutti
