// A running block: its threads, its shared memory and the scheduler that switches between them.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/cuda_emulator/machine/barriers.h"
#include "tools/cuda_emulator/machine/cuda_thread.h"
#include "tools/cuda_emulator/machine/patience.h"
#include "tools/cuda_emulator/machine/races.h"
#include "tools/cuda_emulator/machine/warp.h"

namespace tutti::emulator {

class Carrier;
class Launch;

/// Everything happens in the one OS thread that calls run(). A thread that waits at a barrier or for its warp
/// is not looked at until it may go on; one that polls takes its turn with the others.
class Block {
 public:
  Block(Launch& launch, std::uint64_t index);
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block();

  Launch& launch() const { return launch_; }

  /// Returns when all threads have ended. A mistake goes to the launch.
  void run();

  // From a carrier.
  void runNewThreads(Carrier& carrier);

  // From device code, through the table of the machine.
  void loaded(CudaThread& thread, u64 address, u64 value);
  void updated(CudaThread& thread, u64 address, u64 before, bool changed);
  /// Gives the other threads a turn; `idle`: this one has nothing to do.
  void yield(CudaThread& thread, bool idle);
  u32 barrier(CudaThread& thread, const Barriers::Arrival& arrival);
  WarpResult warp(CudaThread& thread, const WarpRequest& request);
  /// Reports the mistake with the kernel and the thread, and unwinds.
  [[noreturn]] void fail(const CudaThread& thread, const std::string& what);

 private:
  /// Runnable threads, first come, first served.
  class ReadyQueue {
   public:
    explicit ReadyQueue(std::size_t most) : places_(std::bit_ceil(most)) {}
    bool empty() const { return first_ == end_; }
    std::size_t size() const { return end_ - first_; }
    void push(CudaThread& thread) { places_[end_++ & (places_.size() - 1)] = &thread; }
    CudaThread& pop() { return *places_[first_++ & (places_.size() - 1)]; }

   private:
    std::vector<CudaThread*> places_;
    std::size_t first_ = 0;  // both only grow; a place is their low bits
    std::size_t end_ = 0;
  };

  std::string nameOf(const CudaThread& thread) const;
  std::string shortNameOf(const CudaThread& thread) const;
  void setUpThreads(std::uint64_t index);
  void runThread(CudaThread& thread);
  void ended(CudaThread& thread);
  void wake(CudaThread& thread) { ready_.push(thread); }
  void completeBarrier(u32 id);
  void completeWarp(Warp& warp);
  void waitToBeWoken(CudaThread& thread);
  void progressed();
  void reportDeadlock();
  void unwindAll();

  Launch& launch_;
  std::unique_ptr<u8, void (*)(void*)> shared_;
  std::vector<CudaThread> threads_;
  std::vector<Warp> warps_;
  Barriers barriers_;
  ReadyQueue ready_;
  Patience patience_;
  OrderWords order_;            // the phases of barriers, then those of warps
  std::size_t next_new_ = 0;    // the first thread that has not started
  u32 live_ = 0;                // threads that have not ended
  std::size_t idle_turns_ = 0;  // in a row, without anything going on
  bool unwinding_ = false;
};

}  // namespace tutti::emulator
