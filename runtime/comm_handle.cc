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
  try {
    auto& process = Process::instance();
    const CurrentGpu current(init.gpus, init.handle->device(), thread);
    init.handle->become(std::make_unique<Communicator>(process, process.settings(), init.nranks, init.id,
                                                       init.rank, init.gpus));
  } catch (const Error& error) {
    init.handle->fail(error);
  } catch (const std::exception& error) {
    init.handle->fail(Error(ncclSystemError, fmt::format("rank {} of {}: making the communicator: {}",
                                                         init.rank, init.nranks, error.what())));
  }
}

std::thread makeInThread(const CommInit& init) {
  try {
    return std::thread([init] { make(init, ThreadOf::library); });
  } catch (const std::system_error& error) {
    init.handle->fail(Error(ncclSystemError, fmt::format("rank {} of {}: starting a thread to join: {}",
                                                         init.rank, init.nranks, error.what())));
    return {};
  }
}

void discardAll(const std::vector<CommInit>& inits) {
  for (const CommInit& init : inits) init.discard();
}

}  // namespace

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
  if (!is_blocking_) {
    // Nobody is there to catch it; who waits for a blocking one reports it.
    Process::instance().setLastError(error.what());
    Process::instance().log().write(LogLevel::warn, -1, error.what());
  }
  error_ = error;
  state_.store(State::failed, std::memory_order_release);
}

void CommHandle::abandon() {
  const std::scoped_lock lock(mutex_);
  abandoned_ = true;
}

Communicator& CommHandle::require(const char* function) const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::ready:
      return *communicator_;
    case State::failed:
      throw Error(*error_);
    case State::starting:
      break;
  }
  throw Error(ncclInvalidArgument,
              fmt::format("{}: the communicator is still being made. Outside a group, wait until "
                          "ncclCommGetAsyncError no longer says ncclInProgress; ncclCommAbort may be called",
                          function));
}

ncclResult_t CommHandle::asyncError() const {
  const State state = state_.load(std::memory_order_acquire);
  if (state == State::starting) return ncclInProgress;
  if (state == State::failed) return error_->code();
  if (const ncclResult_t failure = communicator_->asyncError(); failure != ncclSuccess) return failure;
  return finalizing_.load(std::memory_order_acquire) ? ncclInProgress : ncclSuccess;
}

ncclResult_t makeCommunicators(std::vector<CommInit> inits) {
  if (inits.empty()) return ncclSuccess;
  const auto isBlocking = [](const CommInit& init) { return init.handle->isBlocking(); };
  if (std::ranges::none_of(inits, isBlocking)) {
    for (const CommInit& init : inits) {
      if (auto thread = makeInThread(init); thread.joinable()) thread.detach();
    }
    return ncclInProgress;
  }
  if (!std::ranges::all_of(inits, isBlocking)) {
    discardAll(inits);
    throw Error(ncclInvalidUsage, "a group holds blocking and non-blocking communicators. Use one kind");
  }
  if (inits.size() == 1) {
    make(inits[0], ThreadOf::program);
  } else {
    std::vector<std::thread> threads;
    threads.reserve(inits.size());
    for (const CommInit& init : inits) threads.push_back(makeInThread(init));
    for (std::thread& thread : threads) {
      if (thread.joinable()) thread.join();
    }
  }
  try {
    for (const CommInit& init : inits) init.handle->require("ncclCommInitRank");
  } catch (const Error&) {
    discardAll(inits);
    throw;
  }
  return ncclSuccess;
}

}  // namespace tutti
