#include "runtime/gpu_proxy.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::microseconds;

/// Passes that one turn of the network lasts: between turns others may have it.
constexpr int kPassesPerTurn = 16;

}  // namespace

GpuProxy::GpuProxy(Network& network, const GpuRank& gpu, std::vector<int> peers)
    : network_(network), gpu_(gpu), peers_(std::move(peers)), wakeup_(::eventfd(0, EFD_CLOEXEC)) {
  if (!wakeup_) throw Error(ncclSystemError, fmt::format("eventfd: {}", std::strerror(errno)));
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    throw Error(ncclSystemError,
                fmt::format("starting the thread that serves kernels between hosts: {}. Check the limit of "
                            "processes (ulimit -u)",
                            error.what()));
  }
}

GpuProxy::~GpuProxy() {
  stop();
  thread_.join();
}

void GpuProxy::wake() noexcept {
  expected_.fetch_add(1, std::memory_order_release);
  knock();
}

void GpuProxy::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  knock();
}

void GpuProxy::knock() noexcept {
  const std::uint64_t one = 1;
  // Fails only where the counter is full, and then the thread is awake.
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof(one));
}

bool GpuProxy::hasWork() const {
  // Finished first: it is never ahead of what was announced.
  const std::uint64_t finished = gpu_.finished();
  return finished < expected_.load(std::memory_order_acquire) + gpu_.announced();
}

/// What has been posted and released goes out, what has arrived comes in. True while the links are in use.
bool GpuProxy::pass() {
  // Asked before: what the last kernel posted is seen by whoever has seen that it ended.
  const bool goes_on = hasWork();
  for (const int peer : peers_) {
    network_.push(peer);
    network_.poll(peer);
  }
  return goes_on;
}

/// Until there is something to do, or to look at. False where that cannot be.
bool GpuProxy::sleep() {
  constexpr auto kBusy = std::chrono::seconds(1);
  constexpr int kLookOutMs = 1;
  constexpr int kIdleLookOutMs = 4;  // of which one in a millisecond takes 1.3 % of a core
  const auto since = std::chrono::steady_clock::now();
  while (!stopping_.load(std::memory_order_acquire)) {
    // Asked before: once no graph is left, nothing announces itself any more.
    const bool looks_out = gpu_.mayRunUnannounced();
    const std::uint64_t announced = gpu_.announced();
    if (announced != seen_) {
      seen_ = announced;
      return true;
    }
    pollfd wakeup{.fd = wakeup_.get(), .events = POLLIN, .revents = 0};
    const bool is_idle = std::chrono::steady_clock::now() - since > kBusy;
    const int ready = ::poll(&wakeup, 1, !looks_out ? -1 : is_idle ? kIdleLookOutMs : kLookOutMs);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    std::uint64_t count = 0;
    return ::read(wakeup_.get(), &count, sizeof(count)) > 0 || errno == EINTR;
  }
  return true;
}

void GpuProxy::serve() {
  // Signals are for the program's own threads.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (!stopping_.load(std::memory_order_acquire)) {
    if (!sleep()) return;
    const auto since = std::chrono::steady_clock::now();
    bool goes_on = true;
    while (goes_on && !stopping_.load(std::memory_order_acquire)) {
      network_.enter();
      goes_on = true;
      for (int i = 0; goes_on && i < kPassesPerTurn; ++i) goes_on = pass();
      const auto busy = std::chrono::steady_clock::now() - since;
      if (goes_on) network_.nap(busy < std::chrono::milliseconds(5) ? microseconds(20) : microseconds(200));
      network_.leave();
      ::sched_yield();
    }
  }
}

}  // namespace tutti
