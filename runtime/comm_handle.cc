#include "runtime/comm_handle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/process.h"

namespace tutti {
namespace {

enum class ThreadOf : std::uint8_t { program, library };

/// Makes a GPU the thread's current one; for a while, in a thread of the program. One of the library never
/// chose another: to give it the first GPU, which CUDA calls its current one, would take memory there.
class CurrentGpu {
 public:
  CurrentGpu(Accelerator* gpus, int device, ThreadOf thread)
      : gpus_(gpus), is_given_back_(gpus != nullptr && thread == ThreadOf::program) {
    if (is_given_back_) before_ = gpus_->currentDevice();
    if (gpus_ != nullptr) gpus_->setDevice(device);
  }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu() {
    if (!is_given_back_) return;
    try {
      gpus_->setDevice(before_);
    } catch (const Error&) {
      return;  // CUDA is at its end, for this process
    }
  }

 private:
  Accelerator* gpus_;
  bool is_given_back_;
  int before_ = -1;
};

/// Never throws: the handle learns how it ended.
void make(const CommInit& init, ThreadOf thread) noexcept {
  std::optional<Membership> membership;
  try {
    auto& process = Process::instance();
    membership = init.membership();
    if (!membership) return;
    const CurrentGpu current(init.gpus, init.handle->device(), thread);
    try {
      init.handle->become(
          std::make_unique<Communicator>(process, process.settings(), *membership, init.gpus));
    } catch (const Error& error) {
      requireCause(error, membership->check);
      throw;
    }
  } catch (const Error& error) {
    init.handle->fail(error);
  } catch (const std::exception& error) {
    const std::string who =
        membership ? fmt::format("rank {} of {}: ", membership->rank, membership->nranks) : "";
    init.handle->fail(Error(ncclSystemError, fmt::format("{}making a communicator: {}", who, error.what())));
  }
}

/// Calls `body` in a thread of its own. Where there is none, the handle learns it.
template <class Body>
std::thread inThread(const CommInit& init, Body body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    init.handle->fail(
        Error(ncclSystemError, fmt::format("starting a thread to make a communicator: {}", error.what())));
    return {};
  }
}

/// What nobody waits for says itself how it ended.
void telling(const std::function<void()>& step) noexcept {
  try {
    step();
  } catch (const std::exception& error) {
    Process::instance().setLastError(error.what());
    Process::instance().log().write(LogLevel::warn, -1, error.what());
  }
}

void makeInBackground(const CommInit& init) {
  if (init.parent != nullptr) init.parent->beginInBackground();
  const auto finish = [init] {
    telling([&init] { init.handle->requireMade(); });
    if (init.parent != nullptr) init.parent->endInBackground();
  };
  auto thread = inThread(init, [init, finish] {
    make(init, ThreadOf::library);
    finish();
  });
  if (thread.joinable()) {
    thread.detach();
  } else {
    finish();
  }
}

void discardAll(const std::vector<CommInit>& inits) {
  for (const CommInit& init : inits) init.discard();
}

}  // namespace

CommHandle::CommHandle(CommConfig config, int device)
    : config_(std::move(config)), device_(device), forks_(Process::instance().forks()) {}

bool CommHandle::isOfParentProcess() const { return forks_ != Process::instance().forks(); }

void CommHandle::become(std::unique_ptr<Communicator> communicator) {
  const std::scoped_lock lock(mutex_);
  if (abandoned_) {
    communicator->abort();
    return;
  }
  communicator_ = std::move(communicator);
  state_.store(State::ready, std::memory_order_release);
}

void CommHandle::fail(const Error& error) {
  error_ = error;
  state_.store(State::failed, std::memory_order_release);
}

void CommHandle::abandon() {
  const std::scoped_lock lock(mutex_);
  abandoned_ = true;
}

void CommHandle::beginInBackground() {
  const std::scoped_lock lock(mutex_);
  in_background_.fetch_add(1, std::memory_order_release);
}

void CommHandle::endInBackground() {
  for (;;) {
    std::function<void()> ending;
    {
      const std::scoped_lock lock(mutex_);
      if (in_background_.load(std::memory_order_relaxed) > 1 || after_background_.empty()) {
        in_background_.fetch_sub(1, std::memory_order_release);
        return;
      }
      ending = std::move(after_background_.front());
      after_background_.pop_front();
    }
    telling(ending);
  }
}

bool CommHandle::afterBackground(std::function<void()> ending) {
  const std::scoped_lock lock(mutex_);
  if (in_background_.load(std::memory_order_relaxed) == 0) return false;
  after_background_.push_back(std::move(ending));
  return true;
}

/// Without blocking: its caller does not wait for what is queued.
bool CommHandle::isFinalizing() const {
  return !isBlocking() && communicator_->isFinalized() && communicator_->turns().pending();
}

Communicator& CommHandle::require(const char* function) const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::ready:
      if (!isInBackground() && !isFinalizing()) return *communicator_;
      throw Error(
          ncclInvalidArgument,
          fmt::format("{}: the communicator is being split, shrunk or finalized in the background. Wait "
                      "until ncclCommGetAsyncError no longer says ncclInProgress",
                      function));
    case State::failed:
      throw Error(*error_);
    case State::recorded:
      throw Error(
          ncclInvalidArgument,
          fmt::format("{}: the communicator is made when the group ends that it was asked for in. Call "
                      "ncclGroupEnd first, then work on it, in another group if in one",
                      function));
    case State::starting:
      break;
  }
  throw Error(
      ncclInvalidArgument,
      fmt::format("{}: the communicator is still being made. Wait until ncclCommGetAsyncError no longer "
                  "says ncclInProgress; ncclCommAbort may be called",
                  function));
}

void CommHandle::requireMade() const {
  if (state_.load(std::memory_order_acquire) == State::failed) throw Error(*error_);
}

ncclResult_t CommHandle::asyncError() const {
  const State state = state_.load(std::memory_order_acquire);
  if (state <= State::starting) return ncclInProgress;
  if (state == State::failed) {
    Process::instance().setLastError(error_->what());
    return error_->code();
  }
  if (const ncclResult_t failure = communicator_->asyncError(); failure != ncclSuccess) return failure;
  return isInBackground() || isFinalizing() ? ncclInProgress : ncclSuccess;
}

ncclResult_t makeCommunicators(std::vector<CommInit> inits) {
  if (inits.empty()) return ncclSuccess;
  for (const CommInit& init : inits) init.handle->start();
  if (std::ranges::none_of(inits, &CommInit::is_blocking)) {
    for (const CommInit& init : inits) makeInBackground(init);
    return ncclInProgress;
  }
  if (!std::ranges::all_of(inits, &CommInit::is_blocking)) {
    discardAll(inits);
    throw Error(ncclInvalidUsage, "a group holds blocking and non-blocking communicators. Use one kind");
  }
  if (inits.size() == 1) {
    make(inits[0], ThreadOf::program);
  } else {
    std::vector<std::thread> threads;
    threads.reserve(inits.size());
    for (const CommInit& init : inits) {
      threads.push_back(inThread(init, [init] { make(init, ThreadOf::library); }));
    }
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
  }
  try {
    for (const CommInit& init : inits) init.handle->requireMade();
  } catch (const Error&) {
    discardAll(inits);
    throw;
  }
  return ncclSuccess;
}

}  // namespace tutti
