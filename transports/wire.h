// The calls by which bytes enter and leave stream sockets: the seam where tests inject faults.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

namespace tutti {

/// Non-blocking. Results and errno as sendmsg() and recvmsg() give them. Used by one thread at a time.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual ssize_t send(int fd, const msghdr& message) = 0;
  virtual ssize_t receive(int fd, msghdr& message) = 0;
};

/// The calls themselves.
class SystemWire final : public Wire {
 public:
  ssize_t send(int fd, const msghdr& message) override {
    return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ssize_t receive(int fd, msghdr& message) override { return ::recvmsg(fd, &message, MSG_DONTWAIT); }
};

}  // namespace tutti
