#include "transports/verbs/gpu_slots.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "transports/link_memory.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Other connections get no further than their writes; the one that reads back is of this process.
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// Whether the port gets at the memory, whatever its registration promised.
void require(ReadBack& reads, const VerbsPort& port) {
  const std::uint64_t read = reads.request();
  while (reads.done() < read) {
    if (!reads.problem().empty())
      throw Error(ncclSystemError, fmt::format("{}: {}", port.name(), reads.problem()));
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
}

/// Why slots are not to lie in GPU memory; "" where they may.
std::string whyHostMemory(const RdmaOptions& options, PathClass nearest) {
  const PathClass level = options.settings.gpu_level.value_or(PathClass::dis);
  if (nearest > level) {
    return fmt::format("NCCL_NET_GDR_LEVEL={}, and the nearest port is at {}", name(level), name(nearest));
  }
  if (options.checksums) return "TUTTI_CHECKSUM=1, for which the host reads them";
  if (!options.faults.empty()) return "TUTTI_FAULTS, for which the host alters copies of them";
  return "";
}

}  // namespace

RegisteredBlock::RegisteredBlock(std::shared_ptr<VerbsDevice> device, std::shared_ptr<GpuBlock> block,
                                 bool may_be_dma_buf)
    : device_(std::move(device)), block_(std::move(block)) {
  const std::string no_dma_buf = may_be_dma_buf ? registerDmaBuf() : "NCCL_DMABUF_ENABLE=0";
  if (region_ != nullptr) return;
  const std::string no_peer_memory = registerAddress();
  if (region_ != nullptr) return;
  throw Error(ncclSystemError,
              fmt::format("{} does not reach GPU memory: by dma-buf: {}; by nvidia-peermem: {}",
                          device_->name(), no_dma_buf, no_peer_memory));
}

RegisteredBlock::~RegisteredBlock() {
  if (region_ != nullptr) device_->verbs().dereg_mr(region_);
}

/// What was in the way, or nothing.
std::string RegisteredBlock::registerDmaBuf() {
  if (device_->verbs().reg_dmabuf_mr == nullptr) return "libibverbs has no ibv_reg_dmabuf_mr";
  std::string why_not;
  const UniqueFd buffer = block_->dmaBuf(&why_not);
  if (!buffer) return why_not;
  const auto bytes = block_->bytes();
  // The registration keeps the buffer; the descriptor may go.
  region_ = device_->verbs().reg_dmabuf_mr(device_->domain(), 0, bytes.size(),
                                           std::bit_cast<std::uint64_t>(bytes.data()), buffer.get(), kAccess);
  way_ = Way::dma_buf;
  if (region_ != nullptr) return "";
  const int error = errno;
  return fmt::format("ibv_reg_dmabuf_mr: {} (errno {})", std::strerror(error), error);
}

std::string RegisteredBlock::registerAddress() {
  const auto bytes = block_->bytes();
  region_ = device_->verbs().reg_mr(device_->domain(), bytes.data(), bytes.size(), kAccess);
  way_ = Way::peer_memory;
  if (region_ != nullptr) return "";
  const int error = errno;
  return fmt::format("ibv_reg_mr: {} (errno {}){}", std::strerror(error), error,
                     error == EFAULT ? "; is the module loaded (modprobe nvidia-peermem)?" : "");
}

GpuSlots::GpuSlots(std::shared_ptr<GpuBlock> block, std::span<const VerbsPort> ports,
                   const RdmaSettings& settings)
    : settings_(settings), block_(std::move(block)) {
  for (const VerbsPort& port : ports) {
    auto& block = blocks_[port.device.get()];
    if (block == nullptr) block = std::make_unique<RegisteredBlock>(port.device, block_, settings.dma_buf);
    require(*readBack(port), port);
  }
}

std::string GpuSlots::way() const {
  const bool is_dma_buf = blocks_.begin()->second->way() == RegisteredBlock::Way::dma_buf;
  return is_dma_buf ? "dma-buf" : "nvidia-peermem";
}

std::shared_ptr<ReadBack> GpuSlots::readBack(const VerbsPort& port) {
  auto& reads = read_backs_[{port.device.get(), port.number}];
  if (reads == nullptr || !reads->problem().empty()) {
    const ReadBack::Source source{std::bit_cast<std::uint64_t>(block_->bytes().data()),
                                  keys(*port.device).remote};
    reads = std::make_shared<ReadBack>(port, settings_, source);
  }
  return reads;
}

void GpuSlots::arm() {
  for (const auto& [port, reads] : read_backs_) reads->arm();
}

SlotPlace placeSlots(const RdmaOptions& options, std::span<const VerbsPort> ports, PathClass nearest,
                     std::size_t link_count) {
  if (options.gpus == nullptr) return {};
  std::string why_not = whyHostMemory(options, nearest);
  try {
    if (why_not.empty()) {
      const auto bytes = LinkMemory::slotsBytes(link_count, options.slot_count, options.slot_bytes);
      auto gpu = std::make_unique<GpuSlots>(options.gpus->makeBlock(bytes), ports, options.settings);
      std::string text = "GPU memory, by " + gpu->way();
      return {std::move(gpu), std::move(text)};
    }
  } catch (const Error& error) {
    why_not = error.what();
  }
  return {nullptr, "pinned host memory: " + why_not};
}

}  // namespace tutti
