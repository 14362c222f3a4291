#include "tools/cuda_emulator/machine/warp.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tutti::emulator {
namespace {

/// Calls body(lane) for each bit.
template <class Body>
void forEachLane(u32 mask, Body body) {
  for (; mask != 0; mask &= mask - 1) body(static_cast<u32>(std::countr_zero(mask)));
}

bool isShuffle(WarpOp op) { return op >= WarpOp::ShuffleUp && op <= WarpOp::ShuffleIndex; }
bool isVote(WarpOp op) { return op >= WarpOp::VoteAny && op <= WarpOp::VoteBallot; }

u32 combined(WarpOp op, u32 a, u32 b) {
  switch (op) {
    case WarpOp::ReduceAdd:
      return a + b;
    case WarpOp::ReduceMin:
      return std::min(a, b);
    case WarpOp::ReduceMax:
      return std::max(a, b);
    case WarpOp::ReduceMinSigned:
      return static_cast<u32>(std::min(static_cast<s32>(a), static_cast<s32>(b)));
    case WarpOp::ReduceMaxSigned:
      return static_cast<u32>(std::max(static_cast<s32>(a), static_cast<s32>(b)));
    case WarpOp::ReduceAnd:
      return a & b;
    case WarpOp::ReduceOr:
      return a | b;
    default:
      return a ^ b;
  }
}

}  // namespace

bool Warp::isComplete(u32 members, const WarpRequest& request) const {
  if ((waiting_ & members) != members) return false;
  bool same = true;
  forEachLane(members, [&](u32 lane) {
    const WarpRequest& other = lanes_[lane]->request;
    same = same && other.mask == request.mask && other.op == request.op;
  });
  return same;
}

u32 Warp::complete() {
  for (u32 left = waiting_; left != 0;) {
    const auto lane = static_cast<u32>(std::countr_zero(left));
    const u32 members = lanes_[lane]->request.mask & live_;
    if (isComplete(members, lanes_[lane]->request)) {
      compute(members);
      waiting_ &= ~members;
      return members;
    }
    left &= ~(members | 1u << lane);
  }
  return 0;
}

/// The pseudo code of PTX's shfl.sync; c holds the segment's mask and the clamp.
WarpResult Warp::shuffle(const CudaThread& thread, u32 members) const {
  const WarpRequest& request = thread.request;
  const u32 lane = thread.lane;
  const u32 distance = request.b & 31;
  const u32 clamp = request.c & 31;
  const u32 segment = (request.c >> 8) & 31;
  const u32 most = (lane & segment) | (clamp & ~segment);
  u32 from = 0;
  bool inside = false;
  switch (request.op) {
    case WarpOp::ShuffleUp:
      from = lane - distance;
      inside = static_cast<s32>(from) >= static_cast<s32>(most);
      break;
    case WarpOp::ShuffleDown:
      from = lane + distance;
      inside = from <= most;
      break;
    case WarpOp::ShuffleXor:
      from = lane ^ distance;
      inside = from <= most;
      break;
    default:
      from = (lane & segment) | (distance & ~segment);
      inside = from <= most;
      break;
  }
  if (!inside) from = lane;
  // A lane that does not take part has nothing to give: undefined on a GPU, 0 here.
  const bool present = ((members >> from) & 1) != 0;
  return {present ? static_cast<u32>(lanes_[from]->request.a) : 0, inside};
}

WarpResult Warp::vote(WarpOp op, u32 members) const {
  u32 ballot = 0;
  forEachLane(members, [&](u32 lane) { ballot |= lanes_[lane]->request.a != 0 ? 1u << lane : 0; });
  switch (op) {
    case WarpOp::VoteAny:
      return {ballot, ballot != 0};
    case WarpOp::VoteAll:
      return {ballot, ballot == members};
    case WarpOp::VoteUniform:
      return {ballot, ballot == 0 || ballot == members};
    default:
      return {ballot, false};
  }
}

WarpResult Warp::match(const CudaThread& thread, u32 members) const {
  u32 equal = 0;
  forEachLane(members,
              [&](u32 lane) { equal |= lanes_[lane]->request.a == thread.request.a ? 1u << lane : 0; });
  if (thread.request.op == WarpOp::MatchAny) return {equal, true};
  return {equal == members ? members : 0, equal == members};
}

WarpResult Warp::reduce(WarpOp op, u32 members) const {
  u32 value = 0;
  bool first = true;
  forEachLane(members, [&](u32 lane) {
    const auto own = static_cast<u32>(lanes_[lane]->request.a);
    value = first ? own : combined(op, value, own);
    first = false;
  });
  return {value, true};
}

void Warp::compute(u32 members) {
  u32 phases = 0;
  forEachLane(members, [&](u32 lane) {
    if (lanes_[lane]->request.op == WarpOp::Sync) phases |= 1u << lanes_[lane]->sync_phase;
  });
  if (phases != 0) ++syncs_;
  forEachLane(members, [&](u32 lane) {
    CudaThread& thread = *lanes_[lane];
    const WarpOp op = thread.request.op;
    thread.synced_phases = phases;
    if (op == WarpOp::Sync) {
      thread.warp_result = {};
    } else if (isShuffle(op)) {
      thread.warp_result = shuffle(thread, members);
    } else if (isVote(op)) {
      thread.warp_result = vote(op, members);
    } else if (op == WarpOp::MatchAny || op == WarpOp::MatchAll) {
      thread.warp_result = match(thread, members);
    } else if (op == WarpOp::Elect) {
      const auto leader = static_cast<u32>(std::countr_zero(members));
      thread.warp_result = {leader, leader == lane};
    } else {
      thread.warp_result = reduce(op, members);
    }
  });
}

std::string Warp::waiting() const {
  if (waiting_ == 0) return {};
  const auto lane = static_cast<u32>(std::countr_zero(waiting_));
  const u32 members = lanes_[lane]->request.mask & live_;
  return fmt::format(
      "warp {}: lane {} waits for the lanes {:#x}, of which {:#x} have not come or came with another "
      "operation or mask",
      lanes_[lane]->warp, lane, members, members & ~waiting_);
}

}  // namespace tutti::emulator
