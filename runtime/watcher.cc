#include "runtime/watcher.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "tutti/error.h"

namespace tutti {
namespace {

[[noreturn]] void fail(const char* call) {
  const int error = errno;
  throw Error(ncclSystemError,
              fmt::format("{}: {} (errno {}). Check the limits of open files and processes (ulimit)", call,
                          std::strerror(error), error));
}

}  // namespace

void Watcher::add(Watched& watched) {
  const std::scoped_lock life(life_);
  if (!thread_.joinable()) start();
  const std::scoped_lock lock(mutex_);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.ptr = &watched;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, watched.fd(), &event) != 0) fail("epoll_ctl");
  due_[&watched] = Clock::now();
  wake();
}

void Watcher::remove(Watched& watched) {
  const std::scoped_lock life(life_);
  {
    const std::scoped_lock lock(mutex_);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched.fd(), nullptr);
    due_.erase(&watched);
    if (!due_.empty()) return;
  }
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
  epoll_ = {};
  wakeup_ = {};
}

void Watcher::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(wakeup_.get(), &one, sizeof(one));  // full: it is awake
}

void Watcher::start() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) fail("epoll_create1");
  wakeup_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (!wakeup_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) != 0) fail("eventfd");
  stopping_.store(false, std::memory_order_release);
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw Error(ncclSystemError, fmt::format("starting the Watcher's thread: {}", error.what()));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int Watcher::sleepLimit() const {
  std::optional<Clock::time_point> first;
  for (const auto& [watched, due] : due_) {
    if (due && (!first || *due < *first)) first = due;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left, 0, 60'000));
}

void Watcher::serve() {
  ::pthread_setname_np(::pthread_self(), "tutti-watcher");
  int limit = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    std::array<epoll_event, 16> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), limit);
    const std::scoped_lock lock(mutex_);
    bool was_woken = false;
    for (int i = 0; i < count; ++i) {
      auto* watched = static_cast<Watched*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (watched == nullptr) {
        std::uint64_t calls = 0;
        was_woken = ::read(wakeup_.get(), &calls, sizeof(calls)) > 0;
      } else if (due_.contains(watched)) {  // it may have been removed since
        attend(*watched);
      }
    }
    const auto now = Clock::now();
    for (const auto& [watched, due] : due_) {
      if (was_woken || (due && *due <= now)) attend(*watched);
    }
    limit = sleepLimit();
  }
}

void Watcher::attend(Watched& watched) {
  const Watched::Next next = watched.attend();
  due_[&watched] = next.delay ? std::optional(Clock::now() + *next.delay) : std::nullopt;
  epoll_event event{};
  event.events = next.when_readable ? EPOLLIN | EPOLLONESHOT : 0;
  event.data.ptr = &watched;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched.fd(), &event);
}

NetworkCare::NetworkCare(Network& network, Watcher& watcher) : network_(network) {
  network_.onLeave([&watcher] { watcher.wake(); });
}

Watched::Next NetworkCare::attend() {
  using std::chrono::milliseconds;
  // Less and less often while a caller stays inside: what it leaves unsent it says itself.
  constexpr milliseconds kFirst{2};
  constexpr milliseconds kLast{32};
  const Network::Visit visit = network_.visit();
  busy_delay_ = visit == Network::Visit::busy ? std::clamp(2 * busy_delay_, kFirst, kLast) : milliseconds(0);
  switch (visit) {
    case Network::Visit::busy:
      return {.when_readable = false, .delay = busy_delay_};
    case Network::Visit::again:
      return {.when_readable = true, .delay = milliseconds(1)};
    case Network::Visit::idle:
      break;
  }
  return {};
}

}  // namespace tutti
