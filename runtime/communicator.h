// A group of ranks with its own message space: what ncclComm_t points to.
#pragma once

#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/cost_model.h"
#include "collectives/planner.h"
#include "kernels/host/host_executor.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/core/accelerator.h"
#include "runtime/core/descriptor.h"
#include "runtime/core/fault.h"
#include "runtime/core/settings.h"
#include "runtime/core/wait.h"
#include "runtime/gpu_work.h"
#include "runtime/meeting.h"
#include "runtime/monitor.h"
#include "runtime/process.h"
#include "runtime/red_ops.h"
#include "runtime/registrations.h"
#include "runtime/subgroup.h"
#include "runtime/task.h"
#include "runtime/traffic.h"
#include "runtime/turns.h"
#include "runtime/wiring.h"
#include "tutti/error.h"
#include "tutti/statistics.h"
#include "tutti/transport.h"

namespace tutti {

/// Marks a communicator as in use by one thread for issuing operations, as long as it lives.
class Occupancy {
 public:
  /// Of one that the caller has marked.
  explicit Occupancy(std::atomic<bool>& busy) : busy_(&busy) {}
  Occupancy(Occupancy&& other) noexcept : busy_(std::exchange(other.busy_, nullptr)) {}
  Occupancy(const Occupancy&) = delete;
  Occupancy& operator=(const Occupancy&) = delete;
  ~Occupancy() {
    // Abort may free the communicator from here on.
    if (busy_ != nullptr) busy_->store(false, std::memory_order_release);
  }

 private:
  std::atomic<bool>* busy_;
};

/// Counts a thread that carries out queued tasks, so that abort can wait for its end.
class Presence {
 public:
  explicit Presence(std::atomic<int>& count) : count_(&count) {
    count.fetch_add(1, std::memory_order_acq_rel);
  }
  Presence(Presence&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  ~Presence() {
    if (count_ != nullptr) count_->fetch_sub(1, std::memory_order_acq_rel);
  }

 private:
  std::atomic<int>* count_;
};

/// What one communicator on a GPU launches together.
struct GpuTasks {
  std::span<const Task> collectives;
  std::vector<std::pair<const Task*, const Task*>> to_self;  ///< sends and receives
  std::vector<const std::vector<Task>*> queues;              ///< transfers, in the order in which they start
  std::vector<GpuStream> streams;
};

/// One rank of a communicator, on host memory or on that of a GPU.
///
/// An operation is validated, then carried out: on host memory by whichever thread has the communicator's
/// turn, on a GPU by kernels that are queued on a stream. One thread at a time issues operations (Occupancy);
/// abort() may come from any thread.
class Communicator final : public EndsWithProcess {
 public:
  /// Joins; returns when all ranks have. Throws Error. With `gpus`, on the calling thread's current GPU.
  Communicator(Process& process, Settings settings, const Membership& membership,
               Accelerator* gpus = nullptr);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Tells the other ranks that this one leaves; does not wait for them.
  ~Communicator();

  int rank() const { return rank_; }
  int nranks() const { return nranks_; }
  const Layout& layout() const { return wiring_.layout; }
  /// The same on all ranks and another for each communicator: puts communicators in one order everywhere.
  std::uint64_t agreedNumber() const { return agreed_number_; }
  /// Pauses before a wait yields, see Pace.
  std::uint32_t spins() const { return spins_; }

  /// Throws Error(ncclInvalidArgument) for a task that no rank could carry out, and the communicator's fault
  /// if it has one, or Error(ncclInvalidUsage) after finalize(). Changes nothing.
  void validate(const Task& task) const;

  /// Carries out one validated task, in this communicator's turn; its buffers are the caller's again
  /// afterwards. `scheduler`: see WaitContext. False when the communicator has a fault, which is sticky and
  /// known to all ranks.
  bool carryOut(const Task& task, WaitScheduler* scheduler, Caller caller = Caller::waits) noexcept;

  /// What one validated task will take by itself, as the cost model (collectives/cost_model.h) has it.
  double estimateMicroseconds(const Task& task) const;

  bool isOnGpu() const { return gpu_work_ != nullptr; }
  /// Throws Error(ncclInvalidArgument) for a stream of another GPU, or CUDA's words for one that is none.
  void requireStream(GpuStream stream) const;
  /// Whether what is queued on the stream is recorded in a graph instead.
  bool isCapturing(GpuStream stream) const { return gpu_work_->isCapturing(stream); }
  /// Queues validated tasks on streams and returns; for communicators on a GPU. Throws Error.
  void launchOnGpu(const GpuTasks& tasks);

  /// Makes the operation that another thread is inside of fail, here and on all ranks, with all that is
  /// queued, and waits up to 10 s until it has left. False when it has not: buffers may still be in use.
  bool abort();

  /// The same, and the communicator stays, for others to be made out of it: its operations are refused from
  /// here on. Throws Error(ncclInvalidArgument) the second time, Error(ncclSystemError) when the operation
  /// has not left.
  void revoke();
  /// For NCCL_SHRINK_ABORT: as revoke(), but the operations fail as after a fault. May be called again.
  void endOperations();

  /// Where its ranks come together again. By one thread at a time.
  Meetings& meetings() { return meetings_; }
  /// Throws Error when this rank cannot make another communicator out of this one: it is finalized, or has a
  /// fault that it did not bring about itself.
  void requireMakesOthers(const char* function) const;
  /// The same, and when one of `ranks` is gone, or this communicator was aborted meanwhile.
  void requireMeeting(const char* function, const std::vector<int>& ranks) const;
  const Settings& settings() const { return settings_; }
  /// nullptr: on host memory.
  Accelerator* gpus() const { return gpus_; }

  /// The process exits and nobody destroyed the communicator: what this rank sent last still reaches the
  /// others, if that takes no longer than a second.
  void endWithProcess() noexcept override;

  /// Refuses operations from now on; those that are queued are still carried out. Throws Error when it is
  /// finalized already.
  void finalize();
  bool isFinalized() const { return finalized_.load(std::memory_order_acquire); }

  /// ncclCommRegister and ncclCommDeregister; see registrations.h for what they throw.
  void* registerBuffer(const void* buffer, std::size_t bytes);
  /// With NCCL_DEBUG_SUBSYS=COLL: a line for each call.
  void sayCall(const char* function, const Task& task, const void* handle, const void* stream);
  void deregisterBuffer(const void* handle) { registrations_.remove(handle); }

  /// Throws Error when a rank sent something that no operation of this rank received, or, on host memory,
  /// when a rank of this host that has left did not receive what this one sent: the calls differed. For the
  /// end of the communicator: waits for kernels.
  void requireAllReceived();

  /// What this rank has moved so far. From any thread.
  tuttiStatistics_t statistics() const;
  /// What carries the links with `peer`. Throws Error where that is no rank.
  tuttiTransport_t transport(int peer) const;

  const FaultCell& fault() const { return fault_; }
  /// The code of the fault; without one, of what is known to have happened to other ranks, which an operation
  /// that needs them would find. From any thread; trips nothing, because this rank may never need them again.
  ncclResult_t asyncError() const;
  /// The fault, which there must be, as this rank reports it.
  Error faultError() const;
  /// Makes this the communicator's fault, unless it has one, and tells all ranks.
  void fail(ncclResult_t code, const std::string& text);

  Turns& turns() { return turns_; }
  RedOps& redOps() { return red_ops_; }
  const RedOps& redOps() const { return red_ops_; }

  /// Held by a thread while it issues operations, and while it is inside one that it waits for. Throws
  /// Error(ncclInvalidUsage) when another thread holds it for longer than `patience`, or the fault that has
  /// ended all operations meanwhile.
  Occupancy occupy(std::chrono::milliseconds patience = {});
  bool busy() const { return busy_.load(std::memory_order_acquire); }

  /// Held by the thread that carries out queued tasks.
  Presence enter() { return Presence(inside_); }

 private:
  bool runCollective(const Task& task, WaitScheduler* scheduler, Caller caller);
  bool runTransfer(const Task& task, WaitScheduler* scheduler, Caller caller);
  HostLinks linksOf(const LinkRow& links);
  void useBandwidths(LinkCosts& costs) const;
  bool execute(const Plan& plan, const UserBuffers& buffers, const WaitContext& wait);
  template <class Program>
  bool carryThrough(HostExecutor& executor, const Descriptor& descriptor, const Program& program);
  void trip(const Descriptor& descriptor, const std::exception& error);
  void findRegions(const Task& task, UserBuffers& buffers);
  void startWatching();
  void startGpu();
  void abandonHere(const Error& error);
  GpuTask gpuCollective(const Task& task);
  GpuTask gpuTransfer(const Task& task);
  void requireReach(const Task& task) const;
  void requireSound(bool is_collective);
  bool finishGpu(std::chrono::milliseconds limit);
  bool endGpu(std::chrono::milliseconds limit);
  void leaveRemains();
  void say(LogLevel level, std::string_view text, LogSubsystem subsystem = LogSubsystem::init,
           SourcePlace place = SourcePlace::here()) const;
  void sayJoined() const;
  void sayPlan(const PlannedOperation& planned);
  void publishFault();
  /// How long the end waits for what is under way.
  std::chrono::milliseconds endLimit() const;
  bool endOperations(const std::string& words);
  void part(std::chrono::milliseconds limit);
  void requireAllDelivered() const;
  void drainNetwork(std::chrono::milliseconds limit);

  Process& process_;
  Accelerator* gpus_;         ///< nullptr: on host memory
  Accelerator* cuda_beside_;  ///< on host memory, in a process that uses CUDA: to recognise its addresses
  int device_ = -1;           ///< the GPU
  Settings settings_;
  int nranks_;
  int rank_;
  std::uint64_t agreed_number_;
  Wiring wiring_;
  std::vector<PeerState> states_;   ///< of executors, by rank
  std::uint64_t executors_ = 0;     ///< so many have been made
  std::vector<std::byte> scratch_;  ///< for packets; of one collective at a time
  Registrations registrations_;
  Meetings meetings_;
  std::bitset<std::size_t{kCollectiveCount} * kWays> told_plans_;  ///< in the log
  bool says_calls_;
  std::uint64_t calls_ = 0;  ///< that were said
  Traffic traffic_;
  FaultCell fault_;
  mutable std::atomic<bool> is_fault_told_{false};  ///< the program knows
  Surroundings around_;
  std::uint32_t spins_;
  std::uint64_t operation_ = 0;
  Turns turns_;
  RedOps red_ops_;
  std::atomic<bool> busy_{false};
  std::atomic<int> inside_{0};  ///< threads that carry out queued tasks
  std::atomic<bool> finalized_{false};
  std::atomic<bool> revoked_{false};
  std::atomic<bool> ended_operations_{false};  ///< its fault is its own doing
  std::atomic<bool> aborted_{false};
  std::atomic<bool> published_{false};
  // Last: what the Watcher attends uses all of the above.
  std::unique_ptr<Watching> control_watch_;
  std::unique_ptr<NetworkCare> network_care_;
  std::unique_ptr<Watching> network_watch_;
  std::unique_ptr<GpuWork> gpu_work_;  ///< nullptr: on host memory
  std::unique_ptr<Watching> gpu_watch_;
};

/// Refuses what no rank could carry out: unknown enumerators, types without a kernel, NULL or overlapping
/// buffers, peers that do not exist, sizes that overflow. Throws Error(ncclInvalidArgument) that names the
/// argument.
void validateTask(const Task& task, int nranks, int rank);

}  // namespace tutti
