// Slots of links in the memory of a GPU, which devices read and write there (GPUDirect RDMA): kernels have
// them at hand, and nothing crosses host memory. Their headers and counters stay in host memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/core/accelerator.h"
#include "transports/rdma.h"
#include "transports/verbs/read_back.h"

namespace tutti {

/// What a device calls memory by.
struct MemoryKeys {
  std::uint32_t local = 0;
  std::uint32_t remote = 0;
};

/// A block of GPU memory, registered with one device for as long as this lives; kept by it.
class RegisteredBlock {
 public:
  enum class Way : std::uint8_t { dma_buf, peer_memory };

  /// By dma-buf if it may be, else by the GPU driver's own way (nvidia-peermem), in which the device's driver
  /// asks it about addresses. Throws Error with what came of both.
  RegisteredBlock(std::shared_ptr<VerbsDevice> device, std::shared_ptr<GpuBlock> block, bool may_be_dma_buf);
  RegisteredBlock(const RegisteredBlock&) = delete;
  RegisteredBlock& operator=(const RegisteredBlock&) = delete;
  ~RegisteredBlock();

  Way way() const { return way_; }
  MemoryKeys keys() const { return {region_->lkey, region_->rkey}; }

 private:
  std::string registerDmaBuf();
  std::string registerAddress();

  std::shared_ptr<VerbsDevice> device_;
  std::shared_ptr<GpuBlock> block_;
  Way way_ = Way::dma_buf;
  ibv_mr* region_ = nullptr;
};

/// Used by one thread at a time.
class GpuSlots {
 public:
  /// For all of the ports: each is tried. Throws Error where one cannot reach the memory. `settings` outlive
  /// this.
  GpuSlots(std::shared_ptr<GpuBlock> block, std::span<const VerbsPort> ports, const RdmaSettings& settings);

  /// "dma-buf", for the log.
  std::string way() const;
  std::shared_ptr<std::byte> memory() const { return {block_, block_->bytes().data()}; }
  MemoryKeys keys(const VerbsDevice& device) const { return blocks_.at(&device)->keys(); }
  /// Of the port; another one where the last has a problem. Throws Error.
  std::shared_ptr<ReadBack> readBack(const VerbsPort& port);
  void arm();

 private:
  using PortId = std::pair<const VerbsDevice*, int>;

  const RdmaSettings& settings_;
  std::shared_ptr<GpuBlock> block_;
  std::map<const VerbsDevice*, std::unique_ptr<RegisteredBlock>> blocks_;
  std::map<PortId, std::shared_ptr<ReadBack>> read_backs_;
};

/// Where the slots of a rank's links lie, and why, in words: "GPU memory, by dma-buf", "pinned host memory:
/// ...".
struct SlotPlace {
  std::unique_ptr<GpuSlots> gpu;  ///< nullptr: host memory
  std::string text;               ///< empty where there is no GPU
};

/// In GPU memory if the rank has a GPU whose memory all ports reach, and nothing speaks against it. `options`
/// outlive what is made. `nearest`: how far the nearest of the ports is, which are those that are used while
/// they work.
SlotPlace placeSlots(const RdmaOptions& options, std::span<const VerbsPort> ports, PathClass nearest,
                     std::size_t link_count);

}  // namespace tutti
