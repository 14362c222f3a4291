// What is launched together: the tasks of one call, or of one group, on any number of communicators.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/communicator.h"
#include "runtime/task.h"
#include "tutti/error.h"

namespace tutti {

class FibreRunner;
class Stream;

/// Where a task goes: on host memory to a stream, or nullptr for work that is waited for; on a GPU to one of
/// CUDA's streams, nullptr being the default stream.
struct Placement {
  std::shared_ptr<Stream> host = nullptr;
  GpuStream gpu = nullptr;
};

/// Carries out one task now, in the calling thread, without a batch: the quick way for a call that is alone.
/// The caller holds the communicator's occupancy. Throws its fault.
void launchInline(Communicator& communicator, const Task& task);

/// Tasks by communicator, each with its place on a stream. Filled by one thread, then launched.
///
/// Within a batch a communicator's collectives come first, in the order in which they were added; then its
/// transfers, those of one pair in the order in which they were added and the pairs all at once.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  void add(const std::shared_ptr<Communicator>& communicator, const Task& task, const Placement& place);

  bool empty() const { return shares_.empty(); }

  /// Launches all tasks. Those on GPUs are queued there, first. Of the others: without streams, carries them
  /// out in this thread and returns when they are done; with streams they run when all of these have reached
  /// them, and launch() waits only where some task has no stream. Throws Error(ncclInvalidUsage), with
  /// nothing launched, when sends and receives of a rank to itself do not pair up, or only some of the GPUs'
  /// streams are being captured; else the first fault of what it waited for.
  void launch();

  /// What launch() will take, µs, as the cost model has it: communicators work side by side; each does its
  /// collectives, then its transfers, both directions at once.
  double estimateMicroseconds() const;

  /// For streams: one of the batch's streams has reached it. Returns when the batch is done: the last to
  /// arrive carries it out. Returns its first fault.
  std::optional<Error> arrive() noexcept;

 private:
  /// The transfers with one peer in one direction.
  struct Queue {
    int peer;
    std::vector<Task> tasks;
  };
  struct Share {
    std::shared_ptr<Communicator> communicator;
    std::vector<Task> collectives{};
    std::vector<Queue> sends{};
    std::vector<Queue> receives{};
    std::vector<GpuStream> gpu_streams{};  ///< on a GPU
    std::uint64_t ticket = 0;
  };

  Share& shareOf(const std::shared_ptr<Communicator>& communicator);
  static const std::vector<Task>* tasksWith(const std::vector<Queue>& queues, int peer);
  static void launchOnGpu(const Share& share);
  static void addStrands(const Share& share, FibreRunner& runner, Caller caller);
  void requireSelfPairs() const;
  void requireOneCapture() const;
  bool needsTurns() const;
  void issue();
  void execute() noexcept;
  void carryOut() noexcept;
  std::optional<Error> firstFault() const;

  std::vector<Share> shares_;
  std::vector<std::shared_ptr<Stream>> streams_;
  bool has_waiting_caller_ = false;  ///< some task has no stream

  std::mutex mutex_;
  std::condition_variable done_changed_;
  std::size_t arrived_ = 0;
  bool done_ = false;
};

}  // namespace tutti
