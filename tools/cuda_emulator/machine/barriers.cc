#include "tools/cuda_emulator/machine/barriers.h"

#include <fmt/format.h>

#include <utility>

namespace tutti::emulator {
namespace {

bool isReduction(BarrierOp op) { return op != BarrierOp::Sync && op != BarrierOp::Arrive; }

}  // namespace

std::string Barriers::mistake(const Arrival& arrival) const {
  if (arrival.id >= kCount) return fmt::format("barrier {} does not exist: there are {}", arrival.id, kCount);
  if (arrival.count % kWarpLanes != 0) {
    return fmt::format("barrier {}: a count of {} is no multiple of {}", arrival.id, arrival.count,
                       kWarpLanes);
  }
  return fmt::format("barrier {}: threads arrive with the counts {} and {}", arrival.id,
                     barriers_[arrival.id].count, arrival.count);
}

std::size_t Barriers::arrive(CudaThread& thread, const Arrival& arrival) {
  Barrier& barrier = barriers_[arrival.id];
  barrier.count = arrival.count;
  ++barrier.arrived;
  if (isReduction(arrival.op)) {
    barrier.op = arrival.op;
    ++barrier.predicates;
    barrier.population += arrival.predicate ? 1 : 0;
  }
  if (arrival.op != BarrierOp::Arrive) barrier.waiting.push_back(&thread);
  return u64{2} * arrival.id + completed_[arrival.id] % 2;
}

u32 Barriers::result(const Barrier& barrier) {
  switch (barrier.op) {
    case BarrierOp::ReduceAnd:
      return barrier.population == barrier.predicates ? 1 : 0;
    case BarrierOp::ReduceOr:
      return barrier.population != 0 ? 1 : 0;
    default:
      return barrier.population;
  }
}

std::vector<CudaThread*> Barriers::complete(u32 id, u32 live_threads) {
  Barrier& barrier = barriers_[id];
  const u32 expected = barrier.count == 0 ? live_threads : barrier.count;
  if (barrier.arrived == 0 || barrier.arrived < expected) return {};
  ++completed_[id];
  const u32 value = result(barrier);
  for (CudaThread* thread : barrier.waiting) thread->barrier_result = value;
  return std::exchange(barrier, {}).waiting;
}

std::string Barriers::waiting(u32 live_threads) const {
  std::string text;
  for (u32 id = 0; id < kCount; ++id) {
    const Barrier& barrier = barriers_[id];
    if (barrier.waiting.empty()) continue;
    text += fmt::format("{}barrier {}: {} of {} threads arrived", text.empty() ? "" : ", ", id,
                        barrier.arrived, barrier.count == 0 ? live_threads : barrier.count);
  }
  return text;
}

}  // namespace tutti::emulator
