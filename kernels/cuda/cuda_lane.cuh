// One block at work on one lane: what it was asked to do, its waits, and how it gives up.
//
// The object lies in shared memory. All threads of the block call its functions with the same arguments,
// except where noted. Thread 0 alone waits, looks at slots' headers, and publishes; results are agreed upon
// at a barrier, so that all threads take the same way. Nobody writes what others may still read: a verb
// either ends with a barrier, or changes only what thread 0 alone looks at before the next one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "collectives/lane_work.h"
#include "kernels/cuda/cuda_work.h"
#include "kernels/cuda/memory_order.cuh"

namespace tutti {

/// Why a wait, or a slot, ended an operation; as CudaFault.
struct CudaReason {
  CudaFaultKind kind;
  std::int32_t peer;
  Descriptor theirs;
  std::uint32_t bytes;
  std::uint64_t sequence;
  std::uint64_t expected;
};

class CudaLane {
 public:
  /// Once per kernel, before all else.
  __device__ void open(CudaRank* rank) {
    if (threadIdx.x != 0) return;
    rank_ = rank;
    control_ = rank->control;
    moved_ = {};
    reported_ = 0;
  }

  /// Takes on a task. `lane` numbers the block's lane; transfers use lane 0, whatever their block.
  __device__ void begin(const CudaTask& task, std::uint32_t lane) {
    __syncthreads();  // all have done with the task before
    if (threadIdx.x == 0) {
      task_ = task;
      work_ = laneWork(task.plan, rank_->rank, lane, rank_->rings);
      const bool is_collective = task.kind == CudaTask::Kind::collective;
      if (!is_collective) work_.root = task.peer;
      const bool packets = task.plan.slots == SlotForm::packets;
      const std::uint32_t first = lane * static_cast<std::uint32_t>(rank_->nranks);
      inbound_ = packets ? rank_->packets_in : rank_->inbound + first;
      outbound_ = packets ? rank_->packets_out : rank_->outbound + first;
      operation_ = is_collective ? rank_->operation + 1 : 0;
    }
    __syncthreads();
  }

  /// Whether nothing has failed so far: else nothing runs any more. A barrier.
  __device__ bool isAlive() const {
    return allSay(threadIdx.x != 0 || loadRelaxedOnDevice(&rank_->failed) == 0);
  }

  __device__ const CudaTask& task() const { return task_; }
  __device__ const LaneWork& work() const { return work_; }
  __device__ const CudaMoved& moved() const { return moved_; }

 protected:
  __device__ bool usesPackets() const { return task_.plan.slots == SlotForm::packets; }

  /// True if all threads say so; a barrier.
  __device__ static bool allSay(bool yes) { return __syncthreads_and(yes ? 1 : 0) != 0; }

  /// Any thread, alone. Polls until ready() holds; false once the operation has failed.
  template <class Ready>
  __device__ bool waitUntil(std::int32_t peer, const Ready& ready) {
    // A look at the host's word goes over the bus: only every so often.
    constexpr std::uint32_t kPollsPerLook = 256;
    std::uint64_t begin_ns = 0;
    for (;;) {
      for (std::uint32_t i = 0; i < kPollsPerLook; ++i) {
        if (!ready()) continue;
        if (begin_ns != 0) endReport();
        return true;
      }
      if (begin_ns == 0) begin_ns = deviceClock();
      if (!lookAround(peer, begin_ns)) return false;
    }
  }

  /// Any thread, alone. Leaves the reason for giving up, unless another thread has left one.
  __device__ void fail(const CudaReason& reason) {
    storeRelaxedOnDevice(&rank_->failed, 1);
    CudaFault& fault = control_->fault;
    if (exchange(wordOf(fault.claimed), 1) != 0) return;
    fault.peer = reason.peer;
    fault.bytes = reason.bytes;
    fault.ours = task_.plan.descriptor;
    fault.theirs = reason.theirs;
    fault.operation = operation_;
    fault.sequence = reason.sequence;
    fault.expected = reason.expected;
    storeRelease(wordOf(fault.kind), static_cast<std::uint32_t>(reason.kind));
  }

  CudaRank* rank_;
  CudaControl* control_;
  CudaTask task_;
  LaneWork work_;
  CudaLinkEnd* inbound_;   ///< by peer
  CudaLinkEnd* outbound_;  ///< by peer
  CudaMoved moved_;        ///< by thread 0

 private:
  /// Whether to wait on; says so if the wait has become a long one.
  __device__ __noinline__ bool lookAround(std::int32_t peer, std::uint64_t begin_ns) {
    const bool stopped = loadAcquire(wordOf(control_->stop)) != 0 || loadRelaxedOnDevice(&rank_->failed) != 0;
    const std::uint64_t waited_ns = deviceClock() - begin_ns;
    const std::uint64_t limit_ns = loadAcquire(wordOf(control_->wait_limit_ns));
    if (stopped || (limit_ns != 0 && waited_ns > limit_ns)) {
      storeRelaxedOnDevice(&rank_->failed, 1);
      if (!stopped) fail({CudaFaultKind::deadline, peer, {}, 0, waited_ns, limit_ns});
      endReport();
      return false;
    }
    if (threadIdx.x == 0 && reported_ == 0 && waited_ns > kReportedAfterNs) report(peer, begin_ns);
    __nanosleep(waited_ns < 100'000 ? 20 : 500);
    return true;
  }

  __device__ void report(std::int32_t peer, std::uint64_t begin_ns) {
    // Blocks often begin to wait at the same time.
    const std::uint64_t serial = begin_ns * kCudaMostBlocks + blockIdx.x;
    CudaWait& line = control_->waits[blockIdx.x];
    const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(task_.plan.descriptor);
    auto* descriptor = reinterpret_cast<std::uint64_t*>(&line.descriptor);
    storeRelaxed(&line.operation, operation_);
    storeRelaxed(&descriptor[0], words[0]);
    storeRelaxed(&descriptor[1], words[1]);
    const std::uint64_t is_send = task_.kind == CudaTask::Kind::send ? 1 : 0;
    static_assert(offsetof(CudaWait, is_send) == offsetof(CudaWait, peer) + 4);
    storeRelaxed(reinterpret_cast<std::uint64_t*>(&line.peer),
                 is_send << 32 | static_cast<std::uint32_t>(peer));
    storeRelease(wordOf(line.serial), serial);
    reported_ = serial;
  }

  __device__ void endReport() {
    if (threadIdx.x != 0 || reported_ == 0) return;
    storeRelease(wordOf(control_->waits[blockIdx.x].serial), 0);
    reported_ = 0;
  }

  std::uint64_t operation_;  ///< 0: transfers
  /// Serial of the wait that the host was told of; 0: none. Thread 0's alone: volatile, or the compiler reads
  /// it in other threads, too, before it asks which thread it is.
  volatile std::uint64_t reported_;
};

}  // namespace tutti
