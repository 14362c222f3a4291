// What translated device code and the machine that runs it agree on. This header is compiled into the
// emulator and, as text, in front of every translated module: a change of it changes the key of the cache.
#pragma once

#include <cstdint>

namespace tutti::emulator {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

constexpr u32 kWarpLanes = 32;

/// What the lanes of a mask do together. Operands a, b, c and the result are those of the PTX instruction.
enum class WarpOp : u32 {
  Sync,
  ShuffleUp,
  ShuffleDown,
  ShuffleXor,
  ShuffleIndex,
  VoteAny,
  VoteAll,
  VoteUniform,
  VoteBallot,
  MatchAny,
  MatchAll,
  Elect,
  ReduceAdd,
  ReduceMin,
  ReduceMax,
  ReduceMinSigned,
  ReduceMaxSigned,
  ReduceAnd,
  ReduceOr,
  ReduceXor,
};

enum class BarrierOp : u32 { Sync, Arrive, ReduceAnd, ReduceOr, ReducePopulation };

struct WarpResult {
  u32 value = 0;
  bool predicate = false;
};

struct Thread;

/// The machine, as device code calls it. Every call may suspend the thread; those that find a mistake do not
/// return, they unwind its stack.
struct Machine {
  /// After a volatile, relaxed or acquire load. Lets others run where the thread seems to poll.
  void (*loaded)(Thread&, u64 address, u64 value);
  /// After an atomic operation; `changed`: whether memory is another now.
  void (*updated)(Thread&, u64 address, u64 before, bool changed);
  void (*sleep)(Thread&, u32 nanoseconds);
  /// Each read of a clock: a thread may wait for time to pass.
  u64 (*clock)(Thread&);
  /// `count` 0: all threads of the block. Returns the reduction.
  u32 (*barrier)(Thread&, BarrierOp, u32 id, u32 count, bool predicate);
  WarpResult (*warp)(Thread&, WarpOp, u32 mask, u64 a, u32 b, u32 c);
  u32 (*print)(Thread&, u64 format, u64 arguments);
  void (*misaligned)(Thread&, u64 address, u32 bytes);
  /// Where memory is checked, of an access that lies in no range that the thread knows. Returns if it may be.
  void (*check)(Thread&, u64 address, u32 bytes);
  void (*trap)(Thread&, const char* why);
  void (*failAssertion)(Thread&, u64 message, u64 file, u32 line, u64 function);
  void (*exit)(Thread&);
  u64 (*allocate)(Thread&, u64 bytes);
  void (*release)(Thread&, u64 address);
};

struct MemoryRange {
  u64 begin = 0;
  u64 bytes = 0;
};

struct Axes {
  u32 x = 0;
  u32 y = 0;
  u32 z = 0;
};

/// A CUDA thread, as device code reads it. Written by the machine before the thread starts.
struct Thread {
  const Machine* machine = nullptr;
  /// The block's shared memory: addresses of the shared window are offsets from here, generic addresses are
  /// addresses of the host.
  u8* shared = nullptr;
  /// The module's variables, in its order.
  u8* const* variables = nullptr;
  u32 dynamic_shared_offset = 0;
  u32 dynamic_shared_bytes = 0;
  u32 shared_bytes = 0;
  Axes tid;
  Axes ntid;
  Axes ctaid;
  Axes nctaid;
  u32 lane = 0;
  u32 warp = 0;
  u64 grid = 0;
  // Where memory is checked: what the thread may touch, as far as it has asked; only as long as *removals is
  // what it was.
  MemoryRange known[4];
  u32 next_known = 0;
  u64 known_removals = 0;
  const u64* removals = nullptr;
};

/// A translated kernel. `parameters`: the packed arguments, read only.
using Entry = void (*)(Thread&, u8* parameters);

}  // namespace tutti::emulator
