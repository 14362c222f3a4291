#include "runtime/cuda/cuda_gpu_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "kernels/cuda/count_launch.h"
#include "kernels/cuda/cuda_kernels.h"
#include "runtime/cuda/hardware_queues.h"
#include "tutti/error.h"

namespace tutti {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

CudaGpuRank::Parts::Parts(OpenedMemory& opened, const Allocations& allocations, const GpuRankOptions& options)
    : control(allocatePinned(sizeof(CudaControl), "the control of kernels")),
      announced(options.wake ? allocatePinned(sizeof(std::uint64_t), "the count of replays") : nullptr),
      stream(makeStream()),
      links(opened, options),
      regions(opened, allocations, links, options) {}

CudaGpuRank::CudaGpuRank(OpenedMemory& opened, const Allocations& allocations, RankList& ranks,
                         const GpuRankOptions& options)
    : options_(options) {
  checkCuda(cudaGetDevice(&device_), "cudaGetDevice");
  const RelaxedCapture relaxed;
  parts_ = std::make_unique<Parts>(opened, allocations, options);
  control().wait_limit_ns.store(options.wait_limit_ns, std::memory_order_relaxed);
  place_.emplace(ranks, *this);
}

void CudaGpuRank::Parts::abandon() noexcept {
  control.get_deleter().is_registered = false;
  if (announced != nullptr) announced.get_deleter().is_registered = false;
  static_cast<void>(stream.release());
  order.abandon();
  lists.abandon();
  links.abandon();
  regions.abandon();
}

CudaGpuRank::~CudaGpuRank() {
  place_.reset();
  if (isLost()) {
    parts_->abandon();
    return;
  }
  const CurrentDevice current(device_, std::nothrow);
  const RelaxedCapture relaxed;
  if (finish(milliseconds(0))) {
    close();
  } else {
    static_cast<void>(parts_.release());
  }
  parts_.reset();
}

// Links.

GpuOffer CudaGpuRank::offer() const { return parts_->links.offer(); }

bool CudaGpuRank::connect(int peer, const PeerInfo& info, const GpuOffer& offer, std::string* reason) {
  const CurrentDevice current(device_);
  const RelaxedCapture relaxed;
  if (info.process_token == options_.self.process_token && offer.gpu.device == device_) {
    const auto shares_gpu = [this](int rank) {
      return parts_->links.reach(rank) == CudaLinks::Reach::same_gpu;
    };
    requireHardwareQueues(2 + static_cast<int>(std::ranges::count_if(options_.locals, shares_gpu)));
  }
  return parts_->links.connect(peer, info, offer, reason);
}

bool CudaGpuRank::confirm(int peer) const {
  const CurrentDevice current(device_, std::nothrow);
  const RelaxedCapture relaxed;
  return parts_->links.confirm(peer);
}

void CudaGpuRank::disconnect(int peer) {
  const CurrentDevice current(device_, std::nothrow);
  const RelaxedCapture relaxed;
  parts_->links.disconnect(peer);
}

LinkView CudaGpuRank::inbound(std::uint32_t lane, int peer) const {
  return parts_->links.inbound(lane, peer);
}
LinkView CudaGpuRank::outbound(std::uint32_t lane, int peer) const {
  return parts_->links.outbound(lane, peer);
}
LinkView CudaGpuRank::packetsFrom(int peer) const { return parts_->links.packetsFrom(peer); }
LinkView CudaGpuRank::packetsTo(int peer) const { return parts_->links.packetsTo(peer); }

void CudaGpuRank::copyToDevice(void* to, const void* from, std::size_t bytes) const {
  checkCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, parts_->stream.get()),
            "cudaMemcpyAsync to the GPU");
  checkCuda(synchronize(parts_->stream.get()), "cudaStreamSynchronize after a copy to the GPU");
}

void CudaGpuRank::start(std::span<const LinkRow> lanes, const LinkRow& packets, const RingTables& rings) {
  const CurrentDevice current(device_);
  const RelaxedCapture relaxed;
  std::vector<CudaLinkEnd> ends;
  const auto append = [&ends](const std::vector<LinkView>& views) {
    for (const LinkView& view : views) ends.emplace_back().view = view;
  };
  for (const LinkRow& row : lanes) append(row.inbound);
  inbound_ends_ = ends.size();
  for (const LinkRow& row : lanes) append(row.outbound);
  append(packets.inbound);
  append(packets.outbound);

  constexpr std::size_t kEndsAt =
      (sizeof(CudaRank) + alignof(CudaLinkEnd) - 1) / alignof(CudaLinkEnd) * alignof(CudaLinkEnd);
  const std::size_t end_bytes = ends.size() * sizeof(CudaLinkEnd);
  const auto tables = std::as_bytes(rings.tables());
  parts_->rank = allocateDevice(kEndsAt + end_bytes + tables.size(), "the ends of links");
  auto* first = reinterpret_cast<CudaLinkEnd*>(parts_->rank.get() + kEndsAt);
  CudaRank made{.rank = options_.self.rank,
                .nranks = options_.nranks,
                .inbound = first,
                .outbound = first + inbound_ends_,
                .regions = parts_->regions.table(),
                .rings = rings.viewAt(reinterpret_cast<const std::uint16_t*>(first + ends.size())),
                .control = &control(),
                .status = options_.status};
  if (!packets.inbound.empty()) {
    made.packets_in = first + 2 * inbound_ends_;
    made.packets_out = made.packets_in + packets.inbound.size();
  }
  if (end_bytes != 0) copyToDevice(first, ends.data(), end_bytes);
  if (!tables.empty()) copyToDevice(first + ends.size(), tables.data(), tables.size());
  copyToDevice(rank(), &made, sizeof(made));
  checkCuda(loadCudaKernels(), fmt::format("cudaFuncGetAttributes of Tutti's kernels on GPU {}", device_),
            "Was Tutti built for this GPU (TUTTI_CUDA_ARCHITECTURES)?");
  if (options_.wake) checkCuda(loadCountLaunch(), "cudaFuncGetAttributes of a kernel that counts replays");
  has_started_.store(true, std::memory_order_release);
}

// Work.

CudaTask CudaGpuRank::taskOf(const GpuTask& task) const {
  const PeerRegions::Loans loans = parts_->regions.loansOf(task);
  const auto kind = [&task] {
    switch (task.kind) {
      case GpuTask::Kind::send:
        return CudaTask::Kind::send;
      case GpuTask::Kind::receive:
        return CudaTask::Kind::receive;
      default:
        return CudaTask::Kind::collective;
    }
  }();
  return {.kind = kind,
          .peer = task.peer,
          .plan = task.plan,
          .input = static_cast<const std::byte*>(task.send),
          .output = static_cast<std::byte*>(task.recv),
          .input_region = task.input_region,
          .output_region = task.output_region,
          .lends_address = loans.by_address,
          .lends_region = loans.by_region,
          .scale = task.scale,
          .scale_at = task.scale_at};
}

template <class Queue>
void CudaGpuRank::inOrder(GpuStream stream, const Queue& queue) {
  const CurrentDevice current(device_);
  const RelaxedCapture relaxed;
  const std::scoped_lock lock(mutex_);
  if (is_finished_) throw Error(ncclInvalidUsage, "an operation while the communicator ends");
  bool has_begun = false;
  try {
    if (parts_->regions.hasNews()) parts_->regions.meet(isIdle());
    const bool is_captured = parts_->order.begin(stream);
    has_begun = true;
    queue(is_captured);
    parts_->order.end(stream);
  } catch (const Error& error) {
    requireNotLost();
    if (has_begun) parts_->order.endAfterFailure(stream);
    // Does it go on failing? Then a kernel has broken the GPU for this process.
    if (!succeeded(cudaStreamQuery(parts_->stream.get()))) noteFailure(error.what());
    throw;
  }
}

void CudaGpuRank::launchCollective(const GpuTask& task, GpuStream stream) {
  inOrder(stream, [&](bool is_captured) {
    if (is_captured && options_.wake) announceBefore(stream);
    checkCuda(tutti::launchCollective({.rank = rank(), .task = taskOf(task)}, stream),
              fmt::format("cudaLaunchKernel for {}", describe(task.plan.descriptor)));
  });
}

void CudaGpuRank::launchTransfers(std::span<const std::vector<GpuTask>> queues, GpuStream stream) {
  std::size_t tasks = 0;
  for (const auto& queue : queues) tasks += queue.size();
  if (tasks == 0) return;
  const auto blocks = std::min<std::size_t>(queues.size(), kCudaMostBlocks);
  inOrder(stream, [&](bool is_captured) {
    TaskLists::List& list = parts_->lists.take(tasks, blocks);
    const std::uint64_t most_bytes = fill(list, queues, blocks);
    if (is_captured && options_.wake) announceBefore(stream);
    checkCuda(tutti::launchTransfers({.rank = rank(), .tasks = list.tasks, .first = list.first},
                                     static_cast<std::uint32_t>(blocks), most_bytes, stream),
              fmt::format("cudaLaunchKernel for {} transfers", tasks));
    TaskLists::launched(list, stream, is_captured);
  });
}

/// More queues than blocks: block b runs queues b, b + blocks, ... They come in rounds, equally numbered on
/// all ranks, and a transfer only waits for such of earlier rounds. Returns the bytes of the block that has
/// most.
std::uint64_t CudaGpuRank::fill(const TaskLists::List& list, std::span<const std::vector<GpuTask>> queues,
                                std::size_t blocks) const {
  std::uint64_t most_bytes = 0;
  std::uint32_t filled = 0;
  for (std::size_t block = 0; block < blocks; ++block) {
    list.first[block] = filled;
    std::uint64_t bytes = 0;
    for (std::size_t queue = block; queue < queues.size(); queue += blocks) {
      for (const GpuTask& task : queues[queue]) {
        list.tasks[filled++] = taskOf(task);
        bytes += task.plan.descriptor.count * sizeOf(task.plan.descriptor.type);
      }
    }
    most_bytes = std::max(most_bytes, bytes);
  }
  list.first[blocks] = filled;
  return most_bytes;
}

void CudaGpuRank::announceBefore(GpuStream stream) {
  if (!is_wake_refused_.load(std::memory_order_relaxed)) {
    const auto wake = [](void* options) { static_cast<GpuRankOptions*>(options)->wake(); };
    const cudaError_t error = cudaLaunchHostFunc(stream, wake, &options_);
    if (error != cudaErrorNotSupported) return checkCuda(error, "cudaLaunchHostFunc");
    succeeded(error);
    is_wake_refused_.store(true, std::memory_order_relaxed);
  }
  checkCuda(launchCountLaunch(announcedWord(), stream), "cudaLaunchKernel of a kernel that counts replays");
}

void CudaGpuRank::copy(void* to, const void* from, std::size_t bytes, GpuStream stream) {
  inOrder(stream, [&](bool /*is_captured*/) {
    checkCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
              fmt::format("cudaMemcpyAsync of {} bytes", bytes));
  });
}

bool CudaGpuRank::isCapturing(GpuStream stream) const {
  const CurrentDevice current(device_);
  return WorkOrder::isCapturing(stream);
}

void CudaGpuRank::order(GpuStream before, GpuStream after) {
  const CurrentDevice current(device_);
  const std::scoped_lock lock(mutex_);
  parts_->order.join(before, after);
}

// Regions.

std::uint32_t CudaGpuRank::publish(void* buffer, std::size_t bytes, std::string* note) {
  requireNotLost();
  const CurrentDevice current(device_);
  const RelaxedCapture relaxed;
  const std::scoped_lock lock(mutex_);
  return parts_->regions.publish(buffer, bytes, note);
}

bool CudaGpuRank::withdraw(std::uint32_t region, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  {
    const std::scoped_lock lock(mutex_);
    parts_->regions.withdraw(region);
  }
  while (!parts_->regions.areClosed(region)) {
    if (steady_clock::now() >= deadline) return false;
    if (!isLost()) {
      // A peer may wait for this rank just so.
      const CurrentDevice current(device_, std::nothrow);
      meetRegions();
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

bool CudaGpuRank::isStillIn(std::uint32_t region, const void* address) const {
  return parts_->regions.isStillIn(region, address);
}

void CudaGpuRank::meetRegions() noexcept {
  // A launch may wait for room in its queue; it meets them itself.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || is_closed_ || isLost()) return;
  // First, and not given back: a thread that never chose a device would get a context on the first one.
  const cudaError_t error = cudaSetDevice(device_);
  if (!succeeded(error)) return noteFailure(fmt::format("cudaSetDevice({}): {}", device_, inWords(error)));
  const RelaxedCapture relaxed;
  // Notes it where a kernel, of this library or not, has broken the GPU for the process.
  isDone();
  if (!parts_->regions.hasNews()) return;
  try {
    parts_->regions.meet(isIdle());
  } catch (const Error& error) {
    noteFailure(error.what());
  }
}

/// No kernel of this rank runs or is queued. Throws Error where one broke.
bool CudaGpuRank::isIdle() const {
  // Finished last: once the event has passed, both stand still.
  return parts_->order.isDone() && control().started.load(std::memory_order_acquire) ==
                                       control().finished.load(std::memory_order_acquire);
}

}  // namespace tutti
