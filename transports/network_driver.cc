#include "transports/network_driver.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>

#include "tutti/error.h"

namespace tutti {

UniqueFd makeEpoll() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (epoll) return epoll;
  throw Error(ncclSystemError,
              fmt::format("epoll_create1: {} (errno {}). Raise the limit of open files (ulimit -n)",
                          std::strerror(errno), errno));
}

void sleepAt(int epoll, std::chrono::nanoseconds limit) {
  pollfd events{epoll, POLLIN, 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((limit - seconds).count())};
  ::ppoll(&events, 1, &time, nullptr);
}

}  // namespace tutti
