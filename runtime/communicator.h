// A group of ranks with its own message space: what ncclComm_t points to.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/host/host_executor.h"
#include "runtime/core/descriptor.h"
#include "runtime/core/fault.h"
#include "runtime/core/settings.h"
#include "runtime/monitor.h"
#include "runtime/process.h"
#include "runtime/unique_id.h"
#include "runtime/wiring.h"
#include "tutti/statistics.h"

namespace tutti {

/// One rank of a communicator on host memory. One thread at a time calls run(); abort() may come from any
/// thread.
class Communicator {
 public:
  /// Joins; returns when all ranks have. Throws Error.
  Communicator(Process& process, Settings settings, int nranks, const UniqueId& id, int rank);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Tells the other ranks that this one leaves; does not wait for them.
  ~Communicator();

  int rank() const { return rank_; }
  int nranks() const { return nranks_; }

  /// Carries out one operation; returns when this rank's part is done and its buffers are its own again.
  /// Bad arguments throw Error(ncclInvalidArgument) and change nothing. Any other Error is sticky: every
  /// later call throws it again.
  void run(const Descriptor& descriptor, const void* send, void* recv);

  /// Makes the operation that another thread is inside of fail, here and on all ranks, and waits up to a
  /// second until it has left. False when it has not: the object must then not be destroyed.
  bool abort();

  /// Throws Error when the left neighbour sent something that no operation of this rank received: the calls
  /// differed. For the end of the communicator.
  void requireAllReceived();

  /// Whether a thread is inside run().
  bool busy() const { return busy_.load(std::memory_order_acquire); }

  const FaultCell& fault() const { return fault_; }

  /// From any thread.
  tuttiStatistics_t statistics() const;

 private:
  bool execute(const Plan& plan, const UserBuffers& buffers);
  void count(const PostedTraffic& traffic);
  const SlotHeader* unreadSlot() const;
  void publishFault();
  [[noreturn]] void throwFault() const;

  Process& process_;
  Settings settings_;
  int nranks_;
  int rank_;
  Wiring wiring_;
  FaultCell fault_;
  Monitor monitor_;
  WaitContext wait_;
  std::uint64_t operation_ = 0;
  // Written by the thread inside run(), read by any; relaxed, because nothing else is published by them.
  std::atomic<std::uint64_t> operations_completed_{0};
  std::atomic<std::uint64_t> slots_posted_{0};
  std::atomic<std::uint64_t> payload_slot_bytes_{0};
  std::atomic<bool> busy_{false};
  std::atomic<bool> published_{false};
};

/// Refuses what no rank could carry out: unknown enumerators, types without a kernel, NULL or overlapping
/// buffers, sizes that overflow. Throws Error(ncclInvalidArgument) that names the argument.
void validateOperation(const Descriptor& descriptor, int nranks, int rank, const void* send,
                       const void* recv);

}  // namespace tutti
