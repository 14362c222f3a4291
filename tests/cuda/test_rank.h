// A rank on a GPU, joined to the others of its test as the runtime joins them.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/planner.h"
#include "runtime/core/accelerator.h"
#include "tests/cuda/board.h"
#include "transports/cuda_ipc/cuda_call.h"

namespace tutti::test {

/// Throws unless it holds.
void require(bool holds, const std::string& what);

/// Memory of a GPU, filled and read through a stream.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes)
      : memory_(allocateDevice(bytes == 0 ? 1 : bytes, "a test")), bytes_(bytes) {}
  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  OwnedDeviceMemory<std::byte> memory_;
  std::size_t bytes_;
};

/// A board that GPUs can work on.
class PinnedBoard {
 public:
  PinnedBoard(Accelerator& accelerator, Board& board) : accelerator_(accelerator), board_(board) {
    accelerator.pin(&board, sizeof(board));
  }
  PinnedBoard(const PinnedBoard&) = delete;
  PinnedBoard& operator=(const PinnedBoard&) = delete;
  ~PinnedBoard() { accelerator_.unpin(&board_); }

 private:
  Accelerator& accelerator_;
  Board& board_;
};

class TestRank {
 public:
  static constexpr LinkShape kShape{
      .lanes = 2, .slot_count = 4, .slot_bytes = 4096, .packet_bytes = kGpuPacketSlotBytes};

  /// All ranks of the board at the same time. Rank r uses GPU r % the number of GPUs. Says on standard output
  /// whom it does not reach, and why.
  TestRank(Accelerator& accelerator, Board& board, int rank, int nranks,
           std::chrono::milliseconds wait_limit);
  TestRank(const TestRank&) = delete;
  TestRank& operator=(const TestRank&) = delete;

  /// All ranks at the same time: what is destroyed then is used by nobody.
  void finish();

  int rank() const { return rank_; }
  int nranks() const { return nranks_; }
  std::uint64_t wakes() const { return wakes_.load(); }
  Board& board() const { return board_; }
  Accelerator& accelerator() const { return accelerator_; }
  GpuRank& gpu() { return *gpu_; }
  cudaStream_t stream() const { return stream_.get(); }
  void barrier() { board_.barrier(nranks_); }

  GpuTask task(const Descriptor& descriptor, const void* send, void* recv,
               const PlanOverride& override = {}) const;
  GpuTask transfer(GpuTask::Kind kind, int peer, void* buffer, std::uint64_t bytes) const;

  void write(const DeviceBuffer& to, const void* from, std::size_t bytes) const;
  void read(void* to, const DeviceBuffer& from, std::size_t bytes) const;
  /// Waits for the stream, and throws what kernels report.
  void synchronize();

 private:
  void connect();
  void start();

  Accelerator& accelerator_;
  Board& board_;
  int rank_;
  int nranks_;
  std::atomic<std::uint64_t> wakes_ = 0;
  std::optional<PinnedBoard> pinned_;
  OwnedStream stream_;
  std::unique_ptr<GpuRank> gpu_;
};

}  // namespace tutti::test
