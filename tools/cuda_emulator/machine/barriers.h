// The sixteen barriers of a block.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tools/cuda_emulator/machine/cuda_thread.h"

namespace tutti::emulator {

/// Touched by the block's own OS thread only. Threads that have ended count as arrived where no count is
/// given, as on a GPU.
class Barriers {
 public:
  static constexpr u32 kCount = 16;
  /// Of all barriers: who arrives at one may be on its way to the next phase before all have left this one.
  static constexpr std::size_t kPhases = std::size_t{2} * kCount;

  struct Arrival {
    BarrierOp op = BarrierOp::Sync;
    u32 id = 0;
    u32 count = 0;  // 0: all threads of the block
    bool predicate = false;
  };

  /// Whether this arrival fits the barrier and those before it.
  bool fits(const Arrival& arrival) const {
    return arrival.id < kCount && arrival.count % kWarpLanes == 0 &&
           (barriers_[arrival.id].arrived == 0 || barriers_[arrival.id].count == arrival.count);
  }
  /// In words, why one does not fit.
  std::string mistake(const Arrival& arrival) const;
  /// Records one that fits; the thread waits unless the op is Arrive. Returns the phase that it belongs to.
  std::size_t arrive(CudaThread& thread, const Arrival& arrival);
  /// When the barrier is complete: empties it and returns who waited, results filled in.
  std::vector<CudaThread*> complete(u32 id, u32 live_threads);
  /// For the report of a deadlock: "barrier 1: 31 of 64 arrived"; empty when nobody waits at any.
  std::string waiting(u32 live_threads) const;

 private:
  struct Barrier {
    BarrierOp op = BarrierOp::Sync;
    u32 count = 0;
    u32 arrived = 0;
    u32 population = 0;
    u32 predicates = 0;  // of how many threads there is one
    std::vector<CudaThread*> waiting;
  };
  static u32 result(const Barrier& barrier);

  std::array<Barrier, kCount> barriers_;
  std::array<std::size_t, kCount> completed_{};  // how often
};

}  // namespace tutti::emulator
