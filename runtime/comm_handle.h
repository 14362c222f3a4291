// The life of a communicator as its handle sees it: being made, ready or failed, finalized, gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/bootstrap/unique_id.h"
#include "runtime/communicator.h"
#include "runtime/config.h"
#include "runtime/subgroup.h"
#include "tutti/error.h"

namespace tutti {

/// What ncclComm_t points to. Thread-safe.
class CommHandle {
 public:
  CommHandle(CommConfig config, int device);
  CommHandle(const CommHandle&) = delete;
  CommHandle& operator=(const CommHandle&) = delete;

  const CommConfig& config() const { return config_; }
  bool isBlocking() const { return config_.is_blocking; }
  int device() const { return device_; }
  /// Whether this process was forked from the one that made it.
  bool isOfParentProcess() const;

  /// The outcome of making it; once, one of the two. One that was abandoned meanwhile is aborted at once.
  void become(std::unique_ptr<Communicator> communicator);
  void fail(const Error& error);

  /// Its making begins; before, a group holds it.
  void start() { state_.store(State::starting, std::memory_order_release); }
  bool isStarting() const { return state_.load(std::memory_order_acquire) <= State::starting; }

  /// The communicator; lives as long as the handle object. Throws Error(ncclInvalidArgument) while it is
  /// being made, or something is done with it in the background; and what made it fail if it did.
  Communicator& require(const char* function) const;
  /// Throws what made it fail, if it did.
  void requireMade() const;
  /// nullptr unless it is ready.
  Communicator* communicator() const {
    return state_.load(std::memory_order_acquire) == State::ready ? communicator_.get() : nullptr;
  }

  /// ncclInProgress while it is being made, finalized or split, else its first failure or that of another
  /// rank, or ncclSuccess.
  ncclResult_t asyncError() const;

  /// Others are made out of it in the background: asyncError() says ncclInProgress in between.
  void beginInBackground();
  void endInBackground();
  bool isInBackground() const { return in_background_.load(std::memory_order_acquire) != 0; }
  /// While something goes on in the background, keeps `ending`, which endInBackground() will call, and
  /// returns true. What it throws is said as the process's last error.
  bool afterBackground(std::function<void()> ending);

  /// Ends the use of one that is still being made.
  void abandon();

 private:
  enum class State { recorded, starting, ready, failed };

  bool isFinalizing() const;

  const CommConfig config_;
  const int device_;
  const std::uint32_t forks_;  ///< of the process, when it was made
  std::mutex mutex_;           ///< orders abandon() and become(); and what comes after the background
  bool abandoned_ = false;
  std::atomic<State> state_{State::recorded};  ///< stored with release after what it tells of
  std::unique_ptr<Communicator> communicator_;
  std::optional<Error> error_;
  std::atomic<int> in_background_{0};  ///< written under the mutex
  std::deque<std::function<void()>> after_background_;
};

/// A communicator that is to be made.
struct CommInit {
  std::shared_ptr<CommHandle> handle;
  /// Which place this rank gets; may wait for other ranks. None: it gets no communicator. Throws Error.
  std::function<std::optional<Membership>()> membership;
  bool is_blocking = true;
  Accelerator* gpus = nullptr;    ///< nullptr: host memory; else that of GPU `handle->device()`
  std::function<void()> discard;  ///< takes the handle away from the user
  std::shared_ptr<CommHandle> parent = nullptr;  ///< what it is made out of, if anything
};

/// Makes them all, each in a thread of its own where there are several, because ranks wait for each other.
/// Blocking ones: returns ncclSuccess when all are made; when one fails, discards all and throws its Error.
/// Non-blocking ones are made in the background, and say themselves how it ended: returns ncclInProgress.
/// Throws Error(ncclInvalidUsage) when there are both.
ncclResult_t makeCommunicators(std::vector<CommInit> inits);

}  // namespace tutti
