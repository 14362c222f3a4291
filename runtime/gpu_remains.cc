#include "runtime/gpu_remains.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <system_error>
#include <thread>

#include "runtime/core/renewed_in_child.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kBetweenPasses = milliseconds(5);
/// How long the thread stays for what other ranks use when nothing moves; who asks later starts another one.
constexpr auto kPatience = seconds(1);
/// After so long, memory goes although kernels run one after the other.
constexpr auto kMostRespect = seconds(1);

/// A thread of the library keeps the device that it chose. Where CUDA refuses, freeing fails as well, and is
/// of no use any more.
void choose(const GpuRemains& remains) noexcept {
  try {
    if (!remains.gpu->isLost()) remains.gpus->setDevice(remains.device);
  } catch (const Error&) {
    return;
  }
}

/// Each is to be detached, and then freed.
std::size_t stepsLeft(const std::vector<GpuRemains>& remains) {
  const auto attached = std::ranges::count_if(remains, [](const auto& each) { return !each.isDetached(); });
  return remains.size() + static_cast<std::size_t>(attached);
}

}  // namespace

void GpuRemains::detach() {
  if (isDetached() || !gpu->finish(milliseconds(0))) return;
  gpu->close();
  mine->detached.store(1, std::memory_order_release);
}

bool GpuRemains::mayGo() const {
  if (!isDetached()) return false;
  const std::vector<bool> dead = watch->dead();
  return std::ranges::all_of(others, [&dead](const auto& other) {
    return other.second->detached.load(std::memory_order_acquire) != 0 ||
           dead[static_cast<std::size_t>(other.first)];
  });
}

void GpuGraveyard::keep(GpuRemains remains) {
  const std::scoped_lock lock(mutex_);
  kept_.push_back(std::move(remains));
  startThread();
}

void GpuGraveyard::sweep() {
  constexpr auto kAtMost = milliseconds(100);
  std::unique_lock lock(mutex_);
  if (kept_.empty() && in_work_ == 0) return;
  startThread();
  // The pass that is under way may have looked already.
  const std::uint64_t enough = passes_ + (in_work_ != 0 ? 2 : 1);
  changed_->wait_for(lock, kAtMost, [&] { return passes_ >= enough || !has_thread_; });
}

void GpuGraveyard::awaitEmpty() {
  constexpr auto kAtMost = seconds(3);
  std::unique_lock lock(mutex_);
  std::uint64_t seen = freed_;
  auto deadline = Clock::now() + kAtMost;
  const auto isEmpty = [this] { return kept_.empty() && in_work_ == 0; };
  while (!isEmpty()) {
    startThread();
    if (!has_thread_) return;
    // The thread is less patient.
    const auto hasNews = [&] { return freed_ != seen || !has_thread_ || isEmpty(); };
    if (!changed_->wait_until(lock, deadline, hasNews)) return;
    if (freed_ != seen) deadline = Clock::now() + kAtMost;
    seen = freed_;
  }
}

void GpuGraveyard::becomeChild() {
  const std::scoped_lock lock(mutex_);
  // Never destroyed: CUDA does not work in a child.
  [[maybe_unused]] static auto* const parents = new std::vector<std::vector<GpuRemains>>;
  parents->push_back(std::move(kept_));
  kept_.clear();
  renewInChild(changed_);
  in_work_ = 0;
  has_thread_ = false;
}

/// With the lock held.
void GpuGraveyard::startThread() {
  is_asked_ = true;
  changed_->notify_all();
  if (has_thread_) return;
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread([this] { serve(); }).detach();
    has_thread_ = true;
  } catch (const std::system_error&) {
    has_thread_ = false;  // whoever comes next tries again
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// CUDA may keep other threads from launching what a waiting kernel waits for, while it waits for that
/// kernel: so memory goes when no kernel is in the way. Kernels that run one after the other are, for a while
/// only.
bool GpuGraveyard::mayWaitForGpus(Accelerator& gpus) {
  const auto activity = gpus.activity();
  if (activity == Accelerator::Activity::none) {
    blocked_ = {};
    return true;
  }
  if (blocked_ == Clock::time_point()) blocked_ = Clock::now();
  return activity == Accelerator::Activity::running && Clock::now() - blocked_ >= kMostRespect;
}

void GpuGraveyard::pass(std::vector<GpuRemains>& remains) {
  for (GpuRemains& each : remains) {
    if (each.isDetached()) continue;
    if (!mayWaitForGpus(*each.gpus)) return;
    choose(each);
    each.detach();
  }
  const auto gone =
      std::partition(remains.begin(), remains.end(), [](const GpuRemains& each) { return !each.mayGo(); });
  for (auto left = remains.end() - gone; left > 0; --left) {
    if (!mayWaitForGpus(*remains.back().gpus)) return;
    choose(remains.back());
    remains.pop_back();
  }
  blocked_ = {};
}

void GpuGraveyard::serve() {
  ::pthread_setname_np(::pthread_self(), "tutti-freeing");
  std::unique_lock lock(mutex_);
  auto last_moved = Clock::now();
  const auto is_blocked = [this] { return blocked_ != Clock::time_point(); };
  while (!kept_.empty() && (is_asked_ || is_blocked() || Clock::now() - last_moved < kPatience)) {
    bool has_moved = std::exchange(is_asked_, false);
    std::vector<GpuRemains> remains = std::exchange(kept_, {});
    const std::size_t before = in_work_ = remains.size();
    const std::size_t steps = stepsLeft(remains);
    lock.unlock();
    pass(remains);
    has_moved |= is_blocked() || stepsLeft(remains) != steps;
    lock.lock();
    freed_ += before - remains.size();
    if (has_moved) last_moved = Clock::now();
    std::ranges::move(remains, std::back_inserter(kept_));
    in_work_ = 0;
    ++passes_;
    changed_->notify_all();
    if (!kept_.empty()) changed_->wait_for(lock, kBetweenPasses, [this] { return is_asked_; });
  }
  has_thread_ = false;
  changed_->notify_all();
}

}  // namespace tutti
