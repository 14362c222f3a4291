// Listening TCP sockets, and connections on their way.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"

namespace tutti {

/// Ports that may be listened on, both ends included; first 0: any free one.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
};

/// Listens on `address`: its port, or where that is 0, the first free one of `range`. Non-blocking. The port
/// becomes part of `address`. Throws Error(ncclSystemError) that names the address, the system's words and
/// what to do; `port_setting` is the variable that chose a port of the address.
UniqueFd listenOn(NetAddress& address, const PortRange& range, std::string_view port_setting);

/// Begins to connect, without waiting. An empty result and *error set when that is refused at once; else
/// connectResult tells once the socket is writable.
UniqueFd startConnect(const NetAddress& to, int* error);

/// Has the system ask now and then whether the other host is still there: one that is gone ends the
/// connection within half a minute, while nothing is said on it.
void keepAlive(int socket);

/// How a connection that was started has come out: 0, or an errno. EINPROGRESS: not yet.
int connectResult(int fd);

}  // namespace tutti
