#include "tools/cuda_emulator/machine/block.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "tools/cuda_emulator/machine/carrier.h"
#include "tools/cuda_emulator/machine/faults.h"
#include "tools/cuda_emulator/machine/launch.h"
#include "tools/cuda_emulator/machine/machine_table.h"
#include "tools/cuda_emulator/machine/memory_check.h"
#include "tools/cuda_emulator/machine/races.h"

namespace tutti::emulator {
namespace {

constexpr std::size_t kSharedAlign = 128;

std::size_t alignUp(std::size_t bytes, std::size_t align) { return (bytes + align - 1) / align * align; }

/// Bytes that no kernel wrote are none that it may count on.
constexpr int kPoison = 0xcd;

u8* allocateShared(std::size_t bytes) {
  const std::size_t whole = alignUp(bytes + 1, kSharedAlign);
  auto* memory = static_cast<u8*>(std::aligned_alloc(kSharedAlign, whole));
  std::memset(memory, kPoison, whole);
  return memory;
}

}  // namespace

Block::Block(Launch& launch, std::uint64_t index)
    : launch_(launch),
      shared_(allocateShared(alignUp(launch.plan().static_shared_bytes, kSharedAlign) +
                             launch.plan().shape.dynamic_shared_bytes),
              std::free),
      warps_((launch.plan().threadsPerBlock() + kWarpLanes - 1) / kWarpLanes),
      ready_(launch.plan().threadsPerBlock()),
      order_(Barriers::kPhases + 2 * warps_.size()),
      live_(launch.plan().threadsPerBlock()) {
  setUpThreads(index);
}

Block::~Block() = default;

void Block::setUpThreads(std::uint64_t index) {
  const LaunchPlan& plan = launch_.plan();
  const Dim3& grid = plan.shape.grid;
  const Dim3& size = plan.shape.block;
  const std::size_t dynamic = alignUp(plan.static_shared_bytes, kSharedAlign);
  CudaThread common;
  common.machine = &machineTable();
  common.block = this;
  common.shared = shared_.get();
  common.variables = plan.variables;
  common.dynamic_shared_offset = static_cast<u32>(dynamic);
  common.dynamic_shared_bytes = static_cast<u32>(plan.shape.dynamic_shared_bytes);
  common.shared_bytes = static_cast<u32>(dynamic + plan.shape.dynamic_shared_bytes);
  common.ntid = {size.x, size.y, size.z};
  common.nctaid = {grid.x, grid.y, grid.z};
  common.ctaid = {static_cast<u32>(index % grid.x), static_cast<u32>(index / grid.x % grid.y),
                  static_cast<u32>(index / grid.x / grid.y)};
  common.grid = launch_.number();
  prepareChecks(common);
  threads_.assign(plan.threadsPerBlock(), common);
  u32 i = 0;
  for (u32 z = 0; z < size.z; ++z) {
    for (u32 y = 0; y < size.y; ++y) {
      for (u32 x = 0; x < size.x; ++x, ++i) {
        CudaThread& thread = threads_[i];
        thread.tid = {x, y, z};
        thread.lane = i % kWarpLanes;
        thread.warp = i / kWarpLanes;
        warps_[thread.warp].add(thread);
      }
    }
  }
}

void Block::run() {
  while (live_ > 0) {
    if (next_new_ < threads_.size()) {
      CarrierPool::ofThisThread().take().carry(*this);
    } else if (!ready_.empty()) {
      ready_.pop().carrier->resume();
    } else {
      reportDeadlock();
    }
    if (launch_.cancelled()) return unwindAll();
  }
}

void Block::runNewThreads(Carrier& carrier) {
  while (next_new_ < threads_.size() && !unwinding_ && !launch_.cancelled()) {
    CudaThread& thread = threads_[next_new_++];
    thread.carrier = &carrier;
    runThread(thread);
    if constexpr (kRacesAreDetected) return;
  }
  CarrierPool::ofThisThread().giveBack(carrier);
}

void Block::runThread(CudaThread& thread) {
  deviceCodeRuns(&thread);
  if constexpr (kRacesAreDetected) detector::name(shortNameOf(thread).c_str());
  launch_.order().acquire(Launch::kBegin);
  try {
    const DeviceCode device;
    launch_.plan().entry(thread, launch_.plan().arguments);
  } catch (const Unwind&) {
    // Ended as its kernel's return would end it, or with a mistake that the launch knows.
  }
  launch_.order().release(Launch::kEnd);
  ended(thread);
}

void Block::ended(CudaThread& thread) {
  deviceCodeRuns(nullptr);
  thread.done = true;
  --live_;
  if (unwinding_) return;
  progressed();
  Warp& warp = warps_[thread.warp];
  warp.end(thread);
  completeWarp(warp);
  if (live_ == 0) return;
  for (u32 id = 0; id < Barriers::kCount; ++id) completeBarrier(id);
}

void Block::completeBarrier(u32 id) {
  for (CudaThread* thread : barriers_.complete(id, live_)) wake(*thread);
}

void Block::completeWarp(Warp& warp) {
  while (u32 lanes = warp.complete()) {
    for (; lanes != 0; lanes &= lanes - 1) wake(warp.lane(static_cast<u32>(__builtin_ctz(lanes))));
  }
}

void Block::progressed() {
  idle_turns_ = 0;
  patience_.renew();
}

void Block::waitToBeWoken(CudaThread& thread) {
  thread.carrier->suspend();
  deviceCodeRuns(&thread);
  if (unwinding_) throw Unwind{};
}

void Block::yield(CudaThread& thread, bool idle) {
  launch_.blockWaits();
  if (launch_.cancelled()) throw Unwind{};
  const bool others = !ready_.empty() || next_new_ < threads_.size();
  if (idle && ++idle_turns_ > ready_.size() && next_new_ == threads_.size()) {
    idle_turns_ = 0;
    patience_.wait();
  }
  if (!others) return;
  wake(thread);
  waitToBeWoken(thread);
}

void Block::loaded(CudaThread& thread, u64 address, u64 value) {
  if (thread.polls.repeats(address, value)) return yield(thread, true);
  if (thread.polls.news()) progressed();
  if (thread.polls.turnIsOver()) yield(thread, false);
}

void Block::updated(CudaThread& thread, u64 address, u64 before, bool changed) {
  if (!changed) return loaded(thread, address, before);
  progressed();
  if (thread.polls.turnIsOver()) yield(thread, false);
}

u32 Block::barrier(CudaThread& thread, const Barriers::Arrival& arrival) {
  if (!barriers_.fits(arrival)) fail(thread, barriers_.mistake(arrival));
  const std::size_t phase = barriers_.arrive(thread, arrival);
  order_.release(phase);
  progressed();
  completeBarrier(arrival.id);
  if (arrival.op == BarrierOp::Arrive) return 0;
  waitToBeWoken(thread);
  order_.acquire(phase);
  return thread.barrier_result;
}

WarpResult Block::warp(CudaThread& thread, const WarpRequest& request) {
  if (((request.mask >> thread.lane) & 1) == 0) {
    fail(thread, fmt::format("a lane that its mask {:#x} leaves out", request.mask));
  }
  Warp& warp = warps_[thread.warp];
  thread.request = request;
  const std::size_t phases = Barriers::kPhases + 2 * std::size_t{thread.warp};
  // Nothing but a barrier of the warp orders accesses: no shuffle, no vote.
  warp.arrive(thread);
  if (request.op == WarpOp::Sync) order_.release(phases + thread.sync_phase);
  progressed();
  completeWarp(warp);
  waitToBeWoken(thread);
  for (std::size_t phase = 0; phase < 2; ++phase) {
    if ((thread.synced_phases >> phase & 1) != 0) order_.acquire(phases + phase);
  }
  return thread.warp_result;
}

std::string Block::nameOf(const CudaThread& thread) const {
  return fmt::format("kernel {}, block ({}, {}, {}), thread ({}, {}, {})", launch_.plan().kernel,
                     thread.ctaid.x, thread.ctaid.y, thread.ctaid.z, thread.tid.x, thread.tid.y,
                     thread.tid.z);
}

/// For reports that cut names after 63 letters.
std::string Block::shortNameOf(const CudaThread& thread) const {
  return fmt::format("{} block {},{},{} thread {},{},{}", launch_.plan().symbol, thread.ctaid.x,
                     thread.ctaid.y, thread.ctaid.z, thread.tid.x, thread.tid.y, thread.tid.z);
}

void Block::fail(const CudaThread& thread, const std::string& what) {
  launch_.fail(nameOf(thread) + ": " + what);
  throw Unwind{};
}

void Block::reportDeadlock() {
  std::string where = barriers_.waiting(live_);
  for (const Warp& warp : warps_) {
    if (where.empty()) where = warp.waiting();
  }
  const CudaThread& thread = threads_.front();
  launch_.fail(fmt::format("kernel {}, block ({}, {}, {}): no thread of the block can go on: {}",
                           launch_.plan().kernel, thread.ctaid.x, thread.ctaid.y, thread.ctaid.z, where));
}

void Block::unwindAll() {
  unwinding_ = true;
  for (std::size_t i = 0; i < next_new_; ++i) {
    if (!threads_[i].done) threads_[i].carrier->resume();
  }
}

}  // namespace tutti::emulator
