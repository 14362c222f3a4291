#include "bench/watchdog.h"

#include <cstdlib>
#include <utility>

#include "bench/say.h"

namespace tutti::perf {
namespace {

/// How long an aborted operation may take to return.
constexpr std::chrono::seconds kGrace{10};

}  // namespace

Watchdog::Watchdog(std::vector<ncclComm_t> comms, int rank, std::chrono::seconds limit)
    : comms_(std::move(comms)), rank_(rank), limit_(limit), deadline_(Clock::time_point::max()) {
  if (limit_.count() > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::arm(const std::string& what) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    what_ = what;
    deadline_ = Clock::now() + limit_;
  }
  changed_.notify_all();
}

void Watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  deadline_ = Clock::time_point::max();
}

bool Watchdog::fired() const {
  const std::lock_guard lock(mutex_);
  return fired_;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (deadline_ == Clock::time_point::max()) {
      changed_.wait(lock);
    } else if (Clock::now() < deadline_) {
      changed_.wait_until(lock, deadline_);
    } else {
      expire(lock);
      return;
    }
  }
}

void Watchdog::expire(std::unique_lock<std::mutex>& lock) {
  fired_ = true;
  sayError("rank " + std::to_string(rank_) + ": " + what_ + " took more than " +
           std::to_string(limit_.count()) + " s (-T); aborting");
  lock.unlock();
  // Each in a thread of its own: an abort waits for the ranks inside of the operation, which may be the
  // others.
  std::vector<std::jthread> aborters;
  aborters.reserve(comms_.size());
  for (ncclComm_t comm : comms_) aborters.emplace_back([comm] { ncclCommAbort(comm); });
  lock.lock();
  if (!changed_.wait_for(lock, kGrace, [this] { return stopping_; })) {
    sayError("rank " + std::to_string(rank_) + ": the aborted operation did not return; ending the process");
    std::_Exit(1);
  }
  lock.unlock();
}

}  // namespace tutti::perf
