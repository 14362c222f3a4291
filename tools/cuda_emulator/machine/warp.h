// What the lanes of a warp do together: shuffles, votes, matches, reductions.
#pragma once

#include <array>
#include <string>

#include "tools/cuda_emulator/machine/cuda_thread.h"

namespace tutti::emulator {

/// Touched by the block's own OS thread only. A request waits until every lane of its mask that still runs
/// has made one of the same kind with the same mask; lanes that ended are left out.
class Warp {
 public:
  /// The lanes, in order; the last warp of a block may have fewer than 32.
  void add(CudaThread& thread) {
    lanes_[thread.lane] = &thread;
    live_ |= 1u << thread.lane;
  }

  /// `thread.request` is made.
  void arrive(CudaThread& thread) {
    thread.sync_phase = syncs_ % 2;
    waiting_ |= 1u << thread.lane;
  }
  /// A lane has ended.
  void end(const CudaThread& thread) { live_ &= ~(1u << thread.lane); }
  /// The mask of the lanes whose requests are complete now, results filled in; 0 when none are. Ask again
  /// until then.
  u32 complete();
  CudaThread& lane(u32 lane) { return *lanes_[lane]; }

  /// For the report of a deadlock; empty when no lane waits.
  std::string waiting() const;

 private:
  bool isComplete(u32 members, const WarpRequest& request) const;
  void compute(u32 members);
  WarpResult shuffle(const CudaThread& thread, u32 members) const;
  WarpResult vote(WarpOp op, u32 members) const;
  WarpResult match(const CudaThread& thread, u32 members) const;
  WarpResult reduce(WarpOp op, u32 members) const;

  std::array<CudaThread*, kWarpLanes> lanes_{};
  u32 live_ = 0;
  u32 waiting_ = 0;
  u32 syncs_ = 0;  // completed, of any lanes
};

}  // namespace tutti::emulator
