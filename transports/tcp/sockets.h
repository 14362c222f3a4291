// TCP sockets as the links use them: all non-blocking and closed on exec.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"

namespace tutti {

/// "10.0.0.7:4711", "[fe80::1%2]:4711".
std::string describe(const NetAddress& address);

/// Starts to connect; the socket tells the outcome. Empty, with errno, where not even that is possible.
UniqueFd dial(const NetAddress& address);

/// The next connection that waits at a listening socket. Empty, with errno, when there is none.
UniqueFd acceptFrom(int listener);

/// No delay for small frames, and an end for connections whose other side has not acknowledged anything for
/// `silence`: neither data nor a probe.
void tune(int socket, std::chrono::milliseconds silence);

/// Bytes that the other side's kernel has not acknowledged.
std::size_t unacknowledgedBytes(int socket);

}  // namespace tutti
