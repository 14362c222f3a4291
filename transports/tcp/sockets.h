// TCP sockets as the links use them: all non-blocking and closed on exec.
#pragma once

#include <cstddef>

#include "runtime/core/unique_fd.h"

namespace tutti {

/// The next connection that waits at a listening socket. Empty, with errno, when there is none.
UniqueFd acceptFrom(int listener);

/// No delay for small frames. An end for connections whose other host is gone while nothing is said; where
/// data waits, the kernel sends it again and again, and the control plane knows better who is gone: a
/// receiver that is stopped, with its window full, must not be taken for one that is lost.
void tune(int socket);

/// Reads what little is left before a socket is closed: closing with unread bytes would reset the connection.
void takePad(int socket);

/// What was read is acknowledged now. A kernel may put that off, to send it with data.
void acknowledgeNow(int socket);

/// Bytes that the other side's kernel has not acknowledged.
std::size_t unacknowledgedBytes(int socket);

}  // namespace tutti
