// Links between ranks of one host in the memory of their GPUs: by IPC between processes, by address within
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/accelerator.h"
#include "runtime/core/link.h"
#include "runtime/core/peer.h"
#include "runtime/core/plan.h"
#include "transports/cuda_ipc/cuda_call.h"
#include "transports/cuda_ipc/cuda_rank_memory.h"
#include "transports/cuda_ipc/opened_memory.h"

namespace tutti {

/// Number, name and place of a GPU. Throws Error.
GpuInfo gpuInfo(int device);

/// One rank's links with the other ranks of its host. Used by one thread at a time, with the rank's device
/// current. Peers are numbered by rank.
///
/// The memory of a rank outlives the mappings of its peers: the ranks of a host meet between disconnecting
/// from all and the destructor.
class CudaLinks {
 public:
  /// Allocates the rank's memory on the current device. Throws Error.
  CudaLinks(OpenedMemory& opened, const GpuRankOptions& options);
  CudaLinks(const CudaLinks&) = delete;
  CudaLinks& operator=(const CudaLinks&) = delete;

  GpuOffer offer() const { return offer_; }

  /// Opens the memory of a peer and exchanges marks with it, from GPU to GPU. False, with *reason set, where
  /// it cannot be reached; then nothing of it stays open.
  bool connect(int peer, const PeerInfo& info, const GpuOffer& offer, std::string* reason);
  /// Whether the peer's mark has arrived. After all have connected.
  bool confirm(int peer) const;
  void disconnect(int peer);
  void disconnectAll();
  /// After a reset of the device, which has ended what is CUDA's. Memory knows by itself.
  void abandon() noexcept { static_cast<void>(stream_.release()); }

  /// How this rank reaches a peer.
  enum class Reach : std::uint8_t {
    none,
    same_gpu,      ///< by address, whatever the memory
    same_process,  ///< by address, memory of cudaMalloc
    ipc,
  };
  Reach reach(int peer) const;

  LinkView inbound(std::uint32_t lane, int peer) const;
  LinkView outbound(std::uint32_t lane, int peer) const;
  LinkView packetsFrom(int peer) const;
  LinkView packetsTo(int peer) const;

  /// Its place among the ranks of this host; -1: of another one.
  int place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }

 private:
  struct Peer {
    Reach reach = Reach::none;
    OpenedMemory::Mapping mapping;  ///< ipc
    CudaRankMemory memory;
    CudaMark mark;
  };
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(place(rank))]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(place(rank))]; }
  const CudaRankMemory& connected(int rank) const;
  /// These two return the base of the peer's memory as this GPU sees it; nullptr, with *reason set, if it
  /// does not.
  std::byte* reachInProcess(Peer& peer, const GpuOffer& offer, std::string* reason) const;
  std::byte* reachByIpc(Peer& peer, const GpuOffer& offer, std::string* reason);
  bool exchangeMarks(const Peer& peer, std::string* reason) const;
  bool readMark(const CudaMark* at, CudaMark* mark, std::string* reason) const;

  OpenedMemory& opened_;
  int device_ = -1;
  int self_ = -1;
  LinkShape shape_;
  std::vector<int> places_;
  std::vector<Peer> peers_;  ///< by place; this rank's own is unused
  OwnedStream stream_;
  OwnedDeviceMemory<std::byte> memory_;
  CudaRankMemory own_;
  CudaMark mark_;
  GpuOffer offer_;
};

}  // namespace tutti
