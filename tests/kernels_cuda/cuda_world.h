// Ranks on one GPU in one process, linked by plain device memory: kernels alone, without the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_work.h"
#include "runtime/core/plan.h"
#include "runtime/core/ring_orders.h"

namespace tutti::test {

/// Throws CUDA's words.
void checkCuda(cudaError_t error, const char* what);

/// Zeroed memory that host and GPU both see.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes);
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
};

/// All ranks of a communicator, each with a stream of its own.
class CudaWorld {
 public:
  CudaWorld(int nranks, const LinkShape& shape);
  CudaWorld(const CudaWorld&) = delete;
  CudaWorld& operator=(const CudaWorld&) = delete;
  ~CudaWorld();

  int nranks() const { return nranks_; }
  CudaRank* rank(int r) const { return ranks_[index(r)].rank->as<CudaRank>(); }
  CudaControl& control(int r) const { return *ranks_[index(r)].control->as<CudaControl>(); }
  RankStatus& status(int r) const { return *ranks_[index(r)].status->as<RankStatus>(); }
  cudaStream_t stream(int r) const { return ranks_[index(r)].stream; }
  /// Where `owner` has mapped regions of `peer`.
  CudaRegions& regions(int owner, int peer) const;
  /// The link `from` -> `to` as both of its ends see it.
  const LinkView& link(int from, int to, std::uint32_t lane = 0) const;

  /// The orders in which ranks stand round the rings, from the next launch on.
  void setRings(const RingTables& rings);
  /// Launches a rank's share of a collective.
  void launch(int r, const CudaTask& task);
  void wait(int r);
  /// All ranks, one task each; returns when they are done.
  void run(std::span<const CudaTask> tasks);

 private:
  struct Rank {
    std::unique_ptr<PinnedMemory> rank;
    std::unique_ptr<PinnedMemory> ends;
    std::unique_ptr<PinnedMemory> regions;
    std::unique_ptr<PinnedMemory> control;
    std::unique_ptr<PinnedMemory> status;
    cudaStream_t stream = nullptr;
  };

  static std::size_t index(int r) { return static_cast<std::size_t>(r); }
  LinkView makeLink(std::uint32_t slot_count, std::uint32_t slot_bytes, bool has_headers);
  void makeRank(int r);
  void connect(int from, int to);

  int nranks_;
  LinkShape shape_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<PinnedMemory>> memory_;
  std::unique_ptr<PinnedMemory> rings_;
};

/// A task of a collective on buffers of the rank.
CudaTask collectiveTask(const Plan& plan, const std::byte* input, std::byte* output);

}  // namespace tutti::test
