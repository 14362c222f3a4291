// What a communicator does on a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "collectives/planner.h"
#include "runtime/communicator.h"
#include "runtime/core/extent.h"
#include "runtime/gpu_remains.h"
#include "runtime/gpu_wiring.h"
#include "runtime/mapped_memory.h"
#include "tutti/error.h"

namespace tutti {
namespace {

std::string placeText(const PointerInfo& info) {
  switch (info.kind) {
    case PointerInfo::Kind::device:
      return fmt::format("memory of GPU {}", info.device);
    case PointerInfo::Kind::managed:
      return "managed memory";
    case PointerInfo::Kind::pinned:
      return "pinned host memory";
    case PointerInfo::Kind::host:
      break;
  }
  return "host memory, not pinned, or was freed";
}

}  // namespace

void Communicator::startGpu() {
  std::vector<int> remote;
  for (int peer = 0; peer < nranks_; ++peer) {
    if (!std::ranges::binary_search(wiring_.locals, peer)) remote.push_back(peer);
  }
  gpu_work_ =
      std::make_unique<GpuWork>(*wiring_.gpu, wiring_.network.get(), around_, std::move(remote),
                                [this](ncclResult_t code, const std::string& text) { fail(code, text); });
  gpu_watch_ = std::make_unique<Watching>(process_.watcher(), *gpu_work_);
}

/// A kernel that touches memory it cannot reach takes the whole process's GPU with it; a CPU that does, the
/// process.
void Communicator::requireReach(const Task& task) const {
  if (gpus_ == nullptr && cuda_beside_ == nullptr && !settings_.checks_pointers) return;
  if (task.descriptor.count == 0) return;
  const Descriptor& d = task.descriptor;
  const bool is_collective = task.kind == Task::Kind::collective;
  const char* call =
      is_collective ? name(d.collective).data() : (task.kind == Task::Kind::send ? "Send" : "Recv");
  const auto requirePlace = [&](const char* argument, const void* address) {
    if (gpus_ == nullptr && cuda_beside_ == nullptr) return;
    const PointerInfo info = (gpus_ != nullptr ? gpus_ : cuda_beside_)->inspect(address);
    if (gpus_ == nullptr) {
      if (info.kind != PointerInfo::Kind::device) return;
      throw Error(
          ncclInvalidArgument,
          fmt::format("{}: {} {} is {}, but this communicator works on host memory. Pass host memory, or "
                      "set TUTTI_DEVICE=cuda",
                      call, argument, address, placeText(info)));
    }
    const bool is_here = info.kind != PointerInfo::Kind::device || info.device == device_;
    if (is_here && info.kind != PointerInfo::Kind::host) return;
    throw Error(
        ncclInvalidArgument,
        fmt::format("{}: {} {} is {}, but this communicator works on memory of GPU {}. Allocate it there "
                    "with cudaMalloc or ncclMemAlloc, or set TUTTI_DEVICE=host for host memory",
                    call, argument, address, placeText(info), device_));
  };
  // The first byte always; all of it where somebody asked for that.
  const auto require = [&](const char* argument, const void* address, std::uint64_t bytes, bool writes) {
    requirePlace(argument, address);
    if (!settings_.checks_pointers || bytes == 0) return;
    if (gpus_ != nullptr) return requirePlace(argument, static_cast<const std::byte*>(address) + bytes - 1);
    const std::string problem = whyNotAccessible(address, bytes, writes);
    if (problem.empty()) return;
    throw Error(
        ncclInvalidArgument,
        fmt::format("rank {}: {} {}: {} bytes at {}: {}. Pass memory that is allocated and long enough for "
                    "count (NCCL_CHECK_POINTERS)",
                    rank_, call, argument, bytes, address, problem));
  };
  const Extent extent = is_collective ? extentOf(d.collective, nranks_) : Extent{1, 1};
  const std::uint64_t block = d.count * sizeOf(d.type);
  const bool reads =
      is_collective ? readsInput(d.collective, rank_ == d.root) : task.kind == Task::Kind::send;
  const bool writes =
      is_collective ? writesOutput(d.collective, rank_ == d.root) : task.kind == Task::Kind::receive;
  if (task.scalar.at != nullptr && d.op == RedOp::premul_sum)
    require("scalar", task.scalar.at, sizeOf(d.type), false);
  if (reads) require("sendbuff", task.send, extent.send_blocks * block, false);
  if (writes) require("recvbuff", task.recv, extent.recv_blocks * block, true);
}

void Communicator::requireStream(GpuStream stream) const {
  const int device = gpus_->deviceOf(stream);
  if (device < 0 || device == device_) return;
  throw Error(ncclInvalidArgument,
              fmt::format("the stream belongs to GPU {}, but this communicator works on GPU {}. "
                          "Create it after cudaSetDevice({})",
                          device, device_, device_));
}

GpuTask Communicator::gpuCollective(const Task& task) {
  const Descriptor& d = task.descriptor;
  const PlannedOperation planned = planOperation(d, wiring_.layout, wiring_.shape,
                                                 settings_.plans[static_cast<std::size_t>(d.collective)]);
  sayPlan(planned);
  const Extent extent = extentOf(d.collective, nranks_);
  const std::uint64_t bytes = d.count * sizeOf(d.type) * std::max(extent.send_blocks, extent.recv_blocks);
  UserBuffers buffers{static_cast<const std::byte*>(task.send), static_cast<std::byte*>(task.recv)};
  const bool may_refer = mayReferInPlace(d.collective) || task.send != task.recv;
  const bool may_lend = may_refer && bytes >= settings_.loans.least_bytes;
  // Asks the driver about each registered buffer, so only where it is of use.
  if (may_lend && planned.plan.slots == SlotForm::plain && !registrations_.empty()) {
    findRegions(task, buffers);
  }
  GpuTask result{.kind = GpuTask::Kind::collective,
                 .plan = planned.plan,
                 .send = task.send,
                 .recv = task.recv,
                 .may_lend = may_lend,
                 .input_region = buffers.input_region,
                 .output_region = buffers.output_region};
  if (d.op == RedOp::premul_sum) {
    result.scale_at = task.scalar.at;
    if (task.scalar.at == nullptr) result.scale = scaleFrom(d.type, task.scalar.data());
  }
  return result;
}

GpuTask Communicator::gpuTransfer(const Task& task) {
  const bool is_send = task.kind == Task::Kind::send;
  GpuTask result{.kind = is_send ? GpuTask::Kind::send : GpuTask::Kind::receive,
                 .plan = makePointToPointPlan(task.descriptor, nranks_, wiring_.shape),
                 .send = task.send,
                 .recv = task.recv,
                 .peer = task.peer,
                 .may_lend = task.descriptor.count >= settings_.loans.least_bytes};
  if (is_send && result.may_lend && !registrations_.empty()) {
    result.input_region = registrations_.find(task.send, task.descriptor.count);
  }
  return result;
}

/// What a caller on the host finds out while it waits: kernels wait when the call has returned.
void Communicator::requireSound(bool is_collective) {
  gpu_work_->adoptReset();
  gpu_work_->adoptFault();
  if (fault_.tripped()) throw faultError();
  // Those that are left may still exchange something in pairs.
  if (!is_collective || !gpu_work_->hasLostOthers()) return;
  if (const auto failure = failureOfPeers(wiring_, rank_)) {
    fail(failure->code(), failure->what());
    throw faultError();
  }
}

void Communicator::launchOnGpu(const GpuTasks& tasks) {
  requireSound(!tasks.collectives.empty());
  GpuLaunch launch{.streams = tasks.streams};
  for (const Task& task : tasks.collectives) launch.collectives.push_back(gpuCollective(task));
  for (const auto& [send, receive] : tasks.to_self) {
    launch.to_self.emplace_back(gpuTransfer(*send), gpuTransfer(*receive));
  }
  for (const auto* queue : tasks.queues) {
    auto& made = launch.queues.emplace_back();
    for (const Task& task : *queue) made.push_back(gpuTransfer(task));
  }
  try {
    gpu_work_->launch(launch);
  } catch (const Error& error) {
    // Part of it may have been launched, and other ranks may be in it already.
    const PeerInfo& self = wiring_.peers[static_cast<std::size_t>(rank_)];
    fail(error.code(), fmt::format("{}: {}", describe(self), error.what()));
    throw faultError();
  }
}

bool Communicator::finishGpu(std::chrono::milliseconds limit) {
  bool has_ended = true;
  try {
    has_ended = gpu_work_->finish(limit);
  } catch (const Error& error) {
    // CUDA itself is at its end, for this process: nothing runs any more.
    around_.warn(error.what());
  }
  if (!has_ended) {
    around_.warn(
        fmt::format("kernels of this rank have not ended within {} s: what they wait for has not come",
                    std::chrono::duration<double>(limit).count()));
  }
  return has_ended;
}

/// The end waits for kernels; those that do not end by themselves are stopped.
bool Communicator::endGpu(std::chrono::milliseconds limit) {
  constexpr auto kOnceStopped = std::chrono::seconds(1);
  if (finishGpu(limit)) return true;
  fail(ncclSystemError, fmt::format("kernels had not ended {} s after the communicator's end was asked for",
                                    std::chrono::duration<double>(limit).count()));
  return finishGpu(kOnceStopped);
}

/// Other ranks have made the communicator already.
void Communicator::abandonHere(const Error& error) {
  network_watch_.reset();
  control_watch_.reset();
  if (gpu_work_ != nullptr) gpu_work_->endProxy();
  gpu_watch_.reset();
  gpu_work_.reset();
  abandonGpu(
      process_, wiring_, rank_,
      [this](int local) { return &wiring_.board[wiring_.locals[static_cast<std::size_t>(local)]]; }, error);
}

void Communicator::leaveRemains() {
  gpu_work_->endProxy();  // it wakes the Watcher
  gpu_watch_.reset();
  gpu_work_.reset();
  GpuRemains remains = takeGpuRemains(wiring_, rank_, [this](int local) {
    return &wiring_.board[wiring_.locals[static_cast<std::size_t>(local)]];
  });
  // Slots in GPU memory are to go with the remains, and not with the last one who has them.
  wiring_.control.reset();
  wiring_.network.reset();
  process_.gpus().graveyard().keep(std::move(remains));
}

tuttiStatistics_t Communicator::statistics() const {
  tuttiStatistics_t result = traffic_.statistics();
  if (wiring_.network != nullptr) result.altered_slots = wiring_.network->alteredSlots();
  if (wiring_.gpu == nullptr) return result;
  const GpuMoved moved = wiring_.gpu->moved();
  result.operations += moved.operations;
  result.slots_posted += moved.slots;
  result.payload_slot_bytes += moved.slot_bytes;
  result.payload_read_bytes += moved.read_bytes;
  result.payload_written_bytes += moved.written_bytes;
  result.payload_network_bytes += moved.network_bytes;
  return result;
}

}  // namespace tutti
