#include "transports/cuda_ipc/cuda_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "transports/cuda_ipc/allocations.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Empty where `device` can use the memory of `other`, both GPUs of this process; else why not.
std::string accessObstacle(int device, int other) {
  int can = 0;
  const cudaError_t error = cudaDeviceCanAccessPeer(&can, device, other);
  if (!succeeded(error)) return fmt::format("cudaDeviceCanAccessPeer: {}", inWords(error));
  if (can != 0) return {};
  return fmt::format(
      "GPU {} has no peer access to GPU {} (nvidia-smi topo -p2p r shows who has; IOMMU and ACS settings of "
      "the machine may forbid it)",
      device, other);
}

/// The number that a peer's GPU has in this process; -1: it is not visible here.
int deviceHere(const GpuInfo& gpu) {
  int device = -1;
  return succeeded(cudaDeviceGetByPCIBusId(&device, gpu.bus_id.data())) ? device : -1;
}

}  // namespace

GpuInfo gpuInfo(int device) {
  GpuInfo info;
  info.device = device;
  cudaDeviceProp properties;
  checkCuda(cudaGetDeviceProperties(&properties, device),
            fmt::format("cudaGetDeviceProperties of GPU {}", device));
  info.uuid = std::bit_cast<std::array<std::uint8_t, 16>>(properties.uuid);
  std::string_view(properties.name).copy(info.name.data(), info.name.size() - 1);
  checkCuda(cudaDeviceGetPCIBusId(info.bus_id.data(), static_cast<int>(info.bus_id.size()), device),
            fmt::format("cudaDeviceGetPCIBusId of GPU {}", device));
  return info;
}

CudaLinks::CudaLinks(OpenedMemory& opened, const GpuRankOptions& options)
    : opened_(opened),
      shape_(options.shape),
      places_(static_cast<std::size_t>(options.nranks), -1),
      peers_(options.locals.size()) {
  for (std::size_t place = 0; place < options.locals.size(); ++place) {
    places_[static_cast<std::size_t>(options.locals[place])] = static_cast<int>(place);
  }
  checkCuda(cudaGetDevice(&device_), "cudaGetDevice");
  offer_.gpu = gpuInfo(device_);
  self_ = place(options.self.rank);
  stream_ = makeStream();
  const int local_count = static_cast<int>(peers_.size());
  if (local_count < 2) return;

  offer_.bytes = CudaRankMemory::bytes(shape_, local_count);
  memory_ = allocateDevice(offer_.bytes, "links");
  own_ = CudaRankMemory(memory_.get(), shape_, local_count, self_);
  offer_.address = reinterpret_cast<std::uintptr_t>(memory_.get());
  const cudaError_t error = exportHandle(memory_.get(), &offer_.ipc_handle);
  offer_.has_ipc_handle = error == cudaSuccess;
  offer_.ipc_error = error;
  mark_ = {.process_token = options.self.process_token, .address = offer_.address, .rank = options.self.rank};
  checkCuda(cudaMemsetAsync(memory_.get(), 0, offer_.bytes, stream_.get()),
            "cudaMemsetAsync of the memory of links");
  checkCuda(cudaMemcpyAsync(own_.mark(), &mark_, sizeof(mark_), cudaMemcpyHostToDevice, stream_.get()),
            "cudaMemcpyAsync to the memory of links");
  checkCuda(synchronize(stream_.get()), "cudaStreamSynchronize for the memory of links");
}

bool CudaLinks::connect(int rank, const PeerInfo& info, const GpuOffer& offer, std::string* reason) {
  disconnect(rank);
  if (offer.address == 0) {
    *reason = fmt::format("rank {} has no memory of a GPU to offer", rank);
    return false;
  }
  const int local_count = static_cast<int>(peers_.size());
  if (offer.bytes != CudaRankMemory::bytes(shape_, local_count)) {
    *reason = fmt::format("rank {} has {} bytes of links, and this rank {}: do both have the same settings?",
                          rank, offer.bytes, offer_.bytes);
    return false;
  }
  Peer to;
  to.mark = {.process_token = info.process_token, .address = offer.address, .rank = rank};
  const bool is_same_process = info.process_token == mark_.process_token;
  std::byte* base = is_same_process ? reachInProcess(to, offer, reason) : reachByIpc(to, offer, reason);
  if (base == nullptr) return false;
  to.memory = CudaRankMemory(base, shape_, local_count, place(rank));
  if (!exchangeMarks(to, reason)) return false;
  peer(rank) = std::move(to);
  return true;
}

std::byte* CudaLinks::reachInProcess(Peer& to, const GpuOffer& offer, std::string* reason) const {
  auto* base = std::bit_cast<std::byte*>(offer.address);
  const int other = offer.gpu.device;
  to.reach = other == device_ ? Reach::same_gpu : Reach::same_process;
  if (other == device_) return base;
  *reason = accessObstacle(device_, other);
  if (!reason->empty()) return nullptr;
  const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
  if (succeeded(error) || error == cudaErrorPeerAccessAlreadyEnabled) return base;
  *reason =
      fmt::format("cudaDeviceEnablePeerAccess from GPU {} to GPU {}: {}", device_, other, inWords(error));
  return nullptr;
}

std::byte* CudaLinks::reachByIpc(Peer& to, const GpuOffer& offer, std::string* reason) {
  if (!offer.has_ipc_handle) {
    const auto error = static_cast<cudaError_t>(offer.ipc_error);
    *reason = fmt::format("rank {} cannot export its GPU's memory: cudaIpcGetMemHandle: {}: {}", to.mark.rank,
                          inWords(error), ipcRemedy(error));
    return nullptr;
  }
  // A GPU that is hidden from this process may be reached all the same: opening its memory tells.
  const int other = offer.gpu.uuid == offer_.gpu.uuid ? device_ : deviceHere(offer.gpu);
  if (other >= 0 && other != device_) {
    *reason = accessObstacle(device_, other);
    if (!reason->empty()) return nullptr;
  }
  to.reach = Reach::ipc;
  to.mapping = opened_.open(device_, offer.ipc_handle, reason);
  return to.mapping.get();
}

/// Copies go from GPU to GPU, as the traffic of links will.
bool CudaLinks::exchangeMarks(const Peer& to, std::string* reason) const {
  cudaError_t error =
      cudaMemcpyAsync(own_.scratch(), to.memory.mark(), sizeof(CudaMark), cudaMemcpyDefault, stream_.get());
  if (error == cudaSuccess) {
    error = cudaMemcpyAsync(to.memory.markOf(self_), own_.mark(), sizeof(CudaMark), cudaMemcpyDefault,
                            stream_.get());
  }
  if (!succeeded(error)) {
    synchronize(stream_.get());  // the memory is closed next
    *reason = fmt::format("copying to and from the memory of rank {}: {}", to.mark.rank, inWords(error));
    return false;
  }
  CudaMark seen;
  if (!readMark(own_.scratch(), &seen, reason)) return false;
  if (seen == to.mark) return true;
  *reason = fmt::format(
      "the memory of rank {} was opened, but reads as something else: copies between these GPUs are broken "
      "(IOMMU or ACS settings of the machine?)",
      to.mark.rank);
  return false;
}

bool CudaLinks::readMark(const CudaMark* at, CudaMark* mark, std::string* reason) const {
  cudaError_t error = cudaMemcpyAsync(mark, at, sizeof(*mark), cudaMemcpyDeviceToHost, stream_.get());
  const cudaError_t waited = synchronize(stream_.get());  // also for what was queued before
  if (error == cudaSuccess) error = waited;
  if (succeeded(error)) return true;
  *reason = fmt::format("reading this rank's own memory: {}", inWords(error));
  return false;
}

bool CudaLinks::confirm(int rank) const {
  if (reach(rank) == Reach::none) return false;
  const Peer& from = peer(rank);
  CudaMark seen;
  std::string reason;
  return readMark(own_.markOf(from.memory.owner()), &seen, &reason) && seen == from.mark;
}

void CudaLinks::disconnect(int rank) {
  if (place(rank) >= 0) peer(rank) = Peer();
}

void CudaLinks::disconnectAll() {
  for (Peer& each : peers_) each = Peer();
}

CudaLinks::Reach CudaLinks::reach(int rank) const {
  const int at = place(rank);
  return at < 0 ? Reach::none : peers_[static_cast<std::size_t>(at)].reach;
}

const CudaRankMemory& CudaLinks::connected(int rank) const {
  if (reach(rank) == Reach::none) {
    throw Error(ncclInternalError, fmt::format("no link in GPU memory with rank {}", rank));
  }
  return peer(rank).memory;
}

LinkView CudaLinks::inbound(std::uint32_t lane, int rank) const {
  LinkView view = CudaRankMemory::link(own_, connected(rank), lane);
  view.peer = rank;
  return view;
}

LinkView CudaLinks::outbound(std::uint32_t lane, int rank) const {
  LinkView view = CudaRankMemory::link(connected(rank), own_, lane);
  view.peer = rank;
  return view;
}

LinkView CudaLinks::packetsFrom(int rank) const {
  LinkView view = CudaRankMemory::packets(own_, connected(rank));
  view.peer = rank;
  return view;
}

LinkView CudaLinks::packetsTo(int rank) const {
  LinkView view = CudaRankMemory::packets(connected(rank), own_);
  view.peer = rank;
  return view;
}

}  // namespace tutti
