// What a rank's kernels report, what becomes of it after a reset, and its end.
#include <fmt/format.h>

#include <thread>

#include "runtime/cuda/cuda_gpu_rank.h"
#include "runtime/cuda/kernel_report.h"
#include "transports/cuda_ipc/driver.h"
#include "tutti/error.h"

namespace tutti {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void CudaGpuRank::stop() noexcept { control().stop.store(1, std::memory_order_release); }

/// Its memory is the first to know. Before start() there is none, and nothing that outlives a failure.
bool CudaGpuRank::isLost() const noexcept {
  if (is_lost_.load(std::memory_order_relaxed)) return true;
  if (!has_started_.load(std::memory_order_acquire)) return false;
  if (!isGone(parts_->rank.get(), parts_->rank.get_deleter().id)) return false;
  is_lost_.store(true, std::memory_order_relaxed);
  return true;
}

void CudaGpuRank::requireNotLost() const {
  if (isLost()) throw Error(ncclUnhandledCudaError, lossInWords());
}

std::string CudaGpuRank::lossInWords() const {
  return fmt::format(
      "cudaDeviceReset has ended all that this process had on GPU {}, the communicator's memory included: it "
      "is of no more use. Call ncclCommDestroy or ncclCommAbort before cudaDeviceReset",
      device_);
}

GpuReport CudaGpuRank::report() const {
  GpuReport report = readReport(control());
  if (report.fault) return report;
  // First: what fails after a reset fails because of it.
  if (isLost()) {
    report.fault = GpuReport::Fault{.kind = GpuReport::Fault::Kind::reset, .text = lossInWords()};
  } else if (has_failed_.load(std::memory_order_acquire)) {
    report.fault = GpuReport::Fault{.kind = GpuReport::Fault::Kind::failed, .text = failure_};
  }
  return report;
}

std::uint64_t CudaGpuRank::finished() const { return control().finished.load(std::memory_order_acquire); }

bool CudaGpuRank::hasFault() const {
  return control().fault.kind.load(std::memory_order_acquire) != 0 ||
         has_failed_.load(std::memory_order_acquire) || is_lost_.load(std::memory_order_relaxed);
}

bool CudaGpuRank::mayRunUnannounced() const noexcept {
  return is_wake_refused_.load(std::memory_order_relaxed) && parts_->order.hasGraphs();
}

std::uint64_t CudaGpuRank::announced() const noexcept {
  if (parts_->announced == nullptr) return 0;
  return std::atomic_ref(*announcedWord()).load(std::memory_order_acquire);
}

GpuMoved CudaGpuRank::moved() const { return readMoved(control()); }

void CudaGpuRank::noteFailure(const std::string& text) {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  failure_ = text;
  has_failed_.store(true, std::memory_order_release);
}

/// Whether all work has ended, well or not.
bool CudaGpuRank::isDone() {
  if (isLost()) return true;
  try {
    return parts_->order.isDone();
  } catch (const Error& error) {
    noteFailure(error.what());
    return true;
  }
}

bool CudaGpuRank::finish(milliseconds limit) {
  std::optional<CurrentDevice> current;  // after a reset that would take memory of the GPU again
  if (!isLost()) current.emplace(device_, std::nothrow);
  const RelaxedCapture relaxed;
  const auto deadline = steady_clock::now() + limit;
  while (true) {
    if (const std::unique_lock lock(mutex_, deadline); lock.owns_lock()) {
      is_finished_ = is_finished_ || isDone();
      if (is_finished_) return true;
    }
    if (steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void CudaGpuRank::close() noexcept {
  const std::scoped_lock lock(mutex_);
  if (is_closed_) return;
  is_closed_ = true;
  if (isLost()) return closePeers();
  const CurrentDevice current(device_, std::nothrow);
  const RelaxedCapture relaxed;
  closePeers();
}

/// What a reset has closed is only forgotten.
void CudaGpuRank::closePeers() {
  parts_->regions.close();
  parts_->links.disconnectAll();
}

Accelerator::Activity CudaGpuRank::activity() {
  using Activity = Accelerator::Activity;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) {
    // A kernel that broke has left what it waited for.
    if (is_finished_ || isLost() || !succeeded(cudaSetDevice(device_))) return Activity::none;
    try {
      if (parts_->order.isDone()) return Activity::none;
    } catch (const Error&) {
      return Activity::none;  // it is the Watcher's to tell
    }
  }
  return readReport(control()).waits.empty() ? Activity::running : Activity::waiting;
}

void CudaGpuRank::readBack(void* to, const void* from, std::size_t bytes) const {
  checkCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, parts_->stream.get()),
            "cudaMemcpyAsync from the GPU");
  checkCuda(synchronize(parts_->stream.get()), "cudaStreamSynchronize after a copy from the GPU");
}

std::optional<std::pair<int, Descriptor>> CudaGpuRank::unreceived() const {
  if (parts_->rank == nullptr || has_failed_.load(std::memory_order_acquire) || isLost()) return {};
  const CurrentDevice current(device_);
  const RelaxedCapture relaxed;
  CudaRank made;
  readBack(&made, rank(), sizeof(made));
  std::vector<CudaLinkEnd> ends(inbound_ends_);
  if (!ends.empty()) readBack(ends.data(), made.inbound, ends.size() * sizeof(CudaLinkEnd));
  for (const CudaLinkEnd& end : ends) {
    if (end.view.posted == nullptr) continue;
    std::uint64_t posted = 0;
    readBack(&posted, end.view.posted, sizeof(posted));
    if (posted <= end.sequence) continue;
    SlotHeader header;
    readBack(&header, &end.view.header(end.sequence), sizeof(header));
    return std::pair(end.view.peer, header.descriptor);
  }
  return {};
}

}  // namespace tutti
