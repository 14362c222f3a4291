// The life of a communicator as its handle sees it: being made, ready or failed, finalized, gone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/bootstrap/unique_id.h"
#include "runtime/communicator.h"
#include "tutti/error.h"

namespace tutti {

/// What ncclComm_t points to. Thread-safe.
class CommHandle {
 public:
  CommHandle(bool is_blocking, int device) : is_blocking_(is_blocking), device_(device) {}
  CommHandle(const CommHandle&) = delete;
  CommHandle& operator=(const CommHandle&) = delete;

  bool isBlocking() const { return is_blocking_; }
  int device() const { return device_; }

  /// The outcome of making it; once, one of the two. One that was abandoned meanwhile is aborted at once.
  void become(std::unique_ptr<Communicator> communicator);
  void fail(const Error& error);

  bool isStarting() const { return state_.load(std::memory_order_acquire) == State::starting; }

  /// The communicator; lives as long as the handle object. Throws Error(ncclInvalidArgument) while it is
  /// being made, and what made it fail if it did.
  Communicator& require(const char* function) const;
  /// nullptr unless it is ready.
  Communicator* communicator() const {
    return state_.load(std::memory_order_acquire) == State::ready ? communicator_.get() : nullptr;
  }

  /// ncclInProgress while it is being made or finalized, else its first failure or that of another rank, or
  /// ncclSuccess.
  ncclResult_t asyncError() const;

  /// For a background finalization: asyncError() says ncclInProgress in between.
  void setFinalizing(bool is_finalizing) { finalizing_.store(is_finalizing, std::memory_order_release); }

  /// Ends the use of one that is still being made.
  void abandon();

 private:
  enum class State { starting, ready, failed };

  const bool is_blocking_;
  const int device_;
  std::mutex mutex_;  ///< orders abandon() and become()
  bool abandoned_ = false;
  std::atomic<State> state_{State::starting};  ///< stored with release after what it tells of
  std::unique_ptr<Communicator> communicator_;
  std::optional<Error> error_;
  std::atomic<bool> finalizing_{false};
};

/// A communicator that is to be made.
struct CommInit {
  std::shared_ptr<CommHandle> handle;
  int nranks = 1;
  int rank = 0;
  UniqueId id;
  Accelerator* gpus = nullptr;    ///< nullptr: host memory; else that of GPU `handle->device()`
  std::function<void()> discard;  ///< takes the handle away from the user
};

/// Makes them all, each in a thread of its own where there are several, because ranks wait for each other.
/// Blocking ones: returns ncclSuccess when all are made; when one fails, discards all and throws its Error.
/// Non-blocking ones are made in the background, and say themselves how it ended: returns ncclInProgress.
/// Throws Error(ncclInvalidUsage) when there are both.
ncclResult_t makeCommunicators(std::vector<CommInit> inits);

}  // namespace tutti
