// A CUDA thread of a running block: what device code sees of it, and what the machine keeps.
#pragma once

#include "tools/cuda_emulator/machine/device/abi.h"

namespace tutti::emulator {

class Block;
class Carrier;

/// Thrown through device code to end a thread: after an error, or by `exit` in a device function.
struct Unwind {};

/// The last strong loads of a thread: one that sees the same word with the same value again is polling.
class PollMemory {
 public:
  /// Whether the load says nothing new.
  bool repeats(u64 address, u64 value) {
    Seen& seen = seen_[(address >> 2) % kPlaces];
    const bool same_place = seen.address == address;
    const bool same = same_place && seen.value == value;
    news_ = same_place && !same;
    seen = {address, value};
    return same;
  }
  /// Whether the word of the load just recorded was seen before with another value.
  bool news() const { return news_; }
  /// Every so many strong operations others get a turn, whatever the loads said.
  bool turnIsOver() { return ++operations_ % kTurn == 0; }

 private:
  static constexpr u32 kPlaces = 8;
  static constexpr u32 kTurn = 64;
  struct Seen {
    u64 address = 0;
    u64 value = 0;
  };
  Seen seen_[kPlaces];
  u32 operations_ = 0;
  bool news_ = false;
};

struct WarpRequest {
  WarpOp op = WarpOp::Sync;
  u32 mask = 0;
  u64 a = 0;
  u32 b = 0;
  u32 c = 0;
};

struct CudaThread : Thread {
  Block* block = nullptr;
  Carrier* carrier = nullptr;
  PollMemory polls;
  WarpRequest request;     // while it waits for its warp
  WarpResult warp_result;  // written by the thread that completed the request
  u32 sync_phase = 0;      // of its warp, when it came
  u32 synced_phases =
      0;  // set of bits: those of all that a completed Sync was for; none after other requests
  u32 barrier_result = 0;  // written by the thread that completed the barrier
  bool done = false;
};

}  // namespace tutti::emulator
