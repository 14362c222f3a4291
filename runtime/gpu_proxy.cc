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
  const std::uint64_t one = 1;
  // Fails only where the counter is full, and then the thread is awake.
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof(one));
}

void GpuProxy::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof(one));
}

bool GpuProxy::hasWork() const { return gpu_.finished() < expected_.load(std::memory_order_acquire); }

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

void GpuProxy::serve() {
  // Signals are for the program's own threads.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (!stopping_.load(std::memory_order_acquire)) {
    std::uint64_t count = 0;
    if (::read(wakeup_.get(), &count, sizeof(count)) < 0 && errno != EINTR) return;
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
