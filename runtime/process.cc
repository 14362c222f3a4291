#include "runtime/process.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "runtime/core/environment.h"
#include "runtime/core/renewed_in_child.h"
#include "transports/memory_budget.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxErrorText = 1023;

thread_local std::string last_error_of_thread;

}  // namespace

Process& Process::instance() {
  static auto* const process = new Process;
  if (process->is_copy_.load(std::memory_order_acquire)) process->becomeOwn();
  return *process;
}

Process::Process() {
  if (sodium_init() < 0) throw Error(ncclSystemError, "libsodium found no source of randomness");
  made_ = this;
  ::pthread_atfork([] { made_->lockForFork(); }, [] { made_->unlockAfterFork(); },
                   [] { made_->becomeCopy(); });
}

/// No other thread is inside while the process is copied.
void Process::lockForFork() {
  renewal_.lock();
  remembered_mutex_.lock();
  mutex_.lock();
  gpus_.lockForFork();
}

void Process::unlockAfterFork() {
  gpus_.unlockAfterFork();
  mutex_.unlock();
  remembered_mutex_.unlock();
  renewal_.unlock();
}

/// In the child, most of which execute another program at once. Nothing may be allocated here: a thread of
/// the parent, which is not in the child, may have been in the allocator.
void Process::becomeCopy() {
  forks_.fetch_add(1, std::memory_order_relaxed);
  is_copy_.store(true, std::memory_order_release);
  unlockAfterFork();
}

/// At the first use in the child. Communicators, and the thread that looks after them, are the parent's.
void Process::becomeOwn() {
  const std::scoped_lock lock(renewal_);
  if (!is_copy_.load(std::memory_order_relaxed)) return;
  remembered_.clear();
  gpus_.becomeChild();
  renewInChild(watcher_);
  renewInChild(topology_);
  renewInChild(rings_);
  is_copy_.store(false, std::memory_order_release);
}

int Process::ncclVersion() {
  try {
    const int version = readOnce().nccl_version;
    return version != 0 ? version : NCCL_VERSION_CODE;
  } catch (const Error&) {
    return NCCL_VERSION_CODE;  // whoever needs the settings reports it
  }
}

const Settings& Process::settings() {
  const Settings& known = readOnce();
  std::call_once(first_look_, [this] {
    copies_ = findOtherCopies();
    if (!copies_.words.empty() && !copies_.is_split) log().write(LogLevel::warn, -1, copies_.words);
    sayRemarks();
  });
  if (copies_.is_split) throw Error(ncclInvalidUsage, copies_.words);
  return known;
}

const Settings& Process::readOnce() {
  const std::scoped_lock lock(mutex_);
  if (!settings_) {
    const Environment environment = Environment::ofProcess();
    settings_ = readSettings(environment);
    remarks_ = environment.warnings();
    std::ranges::move(environment.unknown(), std::back_inserter(settings_->ignored));
  }
  return *settings_;
}

void Process::sayRemarks() {
  for (const std::string& remark : remarks_) log().write(LogLevel::warn, -1, remark);
  for (const std::string& variable : settings_->ignored) {
    log().write(LogLevel::info, -1, variable + " has no effect here, see docs/environment.md; it is ignored",
                LogSubsystem::env);
  }
}

Log& Process::log() {
  LogSettings settings;
  try {
    settings = readOnce().log;
  } catch (const Error&) {
    // Whoever needs the settings reports it; logging stays off.
  }
  const std::scoped_lock lock(mutex_);
  if (!log_) log_.emplace(settings);
  return *log_;
}

void Process::sayHostMemory(const std::string& why) {
  std::call_once(host_memory_told_,
                 [&] { log().write(LogLevel::info, -1, "communicators work on host memory: " + why); });
}

void Process::sayIgnored(bool on_gpus) {
  const Settings& known = settings();
  std::call_once(ignored_told_[on_gpus ? 1 : 0], [&] {
    for (const std::string& variable : on_gpus ? known.ignored_on_gpus : known.ignored_on_host) {
      log().write(LogLevel::info, -1,
                  fmt::format("{} has no effect on {}, see docs/environment.md; it is ignored", variable,
                              on_gpus ? "GPUs" : "host memory"),
                  LogSubsystem::env);
    }
  });
}

bool Process::isFirst(const Secret& communicator) {
  const std::scoped_lock lock(mutex_);
  if (!first_communicator_) first_communicator_ = communicator;
  return *first_communicator_ == communicator;
}

std::array<std::uint8_t, 16> Process::token() {
  const std::scoped_lock lock(mutex_);
  if (token_pid_ != ::getpid()) {
    token_ = randomToken();
    token_pid_ = ::getpid();
  }
  return token_;
}

void Process::remember(EndsWithProcess& object) {
  [[maybe_unused]] static const bool is_registered = std::atexit([] {
                                                       if (Process* process = instanceAtExit())
                                                         process->endRemembered();
                                                     }) == 0;
  const std::scoped_lock lock(remembered_mutex_);
  remembered_.insert(&object);
}

void Process::endRemembered() {
  const std::scoped_lock lock(remembered_mutex_);
  for (EndsWithProcess* remembered : remembered_) remembered->endWithProcess();
}

void Process::forget(EndsWithProcess& object) {
  const std::scoped_lock lock(remembered_mutex_);
  remembered_.erase(&object);
}

void Process::setLastError(const std::string& message) {
  last_error_of_thread = message.substr(0, kMaxErrorText);
  const std::scoped_lock lock(mutex_);
  last_error_ = last_error_of_thread;
}

std::string Process::lastError() {
  if (!last_error_of_thread.empty()) return last_error_of_thread;
  const std::scoped_lock lock(mutex_);
  return last_error_;
}

void* Process::allocate(std::size_t bytes) {
  requireFreeMemory(bytes, "ncclMemAlloc", "Ask for less, or free memory");
  auto segment = segments_.create(std::max<std::size_t>(bytes, 1));
  segment->reserve(0, segment->bytes());
  std::byte* memory = segment->data();
  const std::scoped_lock lock(mutex_);
  allocations_[memory] = {std::move(segment), 0};
  return memory;
}

std::map<const std::byte*, Process::Allocation>::iterator Process::allocationOf(const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  const auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return allocations_.end();
  const auto found = std::prev(after);
  return at < found->first + found->second.segment->bytes() ? found : allocations_.end();
}

void Process::release(void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(static_cast<const std::byte*>(memory));
  if (found == allocations_.end()) {
    throw Error(
        ncclInvalidArgument,
        fmt::format("ncclMemFree: ptr {} is not the start of memory from ncclMemAlloc, or was freed already",
                    memory));
  }
  if (found->second.pins > 0) {
    throw Error(
        ncclInvalidUsage,
        fmt::format(
            "ncclMemFree: ptr {} is still registered {} time(s). Call ncclCommDeregister first: peers "
            "may be using it",
            memory, found->second.pins));
  }
  allocations_.erase(found);
}

std::shared_ptr<Segment> Process::pin(const void* memory, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocationOf(memory);
  if (found == allocations_.end()) return nullptr;
  const auto left = static_cast<std::size_t>(found->first + found->second.segment->bytes() -
                                             static_cast<const std::byte*>(memory));
  if (bytes > left) return nullptr;
  ++found->second.pins;
  return found->second.segment;
}

void Process::unpin(const void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocationOf(memory);
  if (found != allocations_.end()) --found->second.pins;
}

}  // namespace tutti
