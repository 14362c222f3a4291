#include "runtime/topology/gpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/topology/cuda_devices.h"
#include "runtime/topology/notation.h"
#include "runtime/topology/nvml.h"
#include "runtime/topology/sysfs.h"
#include "runtime/topology/topology_builder.h"

namespace tutti {
namespace {

class GpuDiscovery {
 public:
  GpuDiscovery(Topology& topology, const DiscoveryOptions& options, bool only_known)
      : options_(options), only_known_(only_known), has_links_(!topology.nvlinks.empty()) {
    builder_.topology = std::move(topology);
  }

  Topology run();

 private:
  /// The node of a GPU, or kNoNode where it is not to be added.
  int place(const std::string& bus_id, int numa);
  void take(const NvmlGpu& gpu);
  void take(const CudaDevice& gpu, int number);
  void connect(const NvmlGpu& gpu);
  void connect(int from, const NvmlLink& link);
  void sayUnseen(const NvmlView& nvml, const CudaView& cuda);
  GpuDetails& detailsOf(int node) { return nodeAt(node).gpu; }
  TopologyNode& nodeAt(int node) { return builder_.topology.nodes[static_cast<std::size_t>(node)]; }
  std::vector<std::string>& unseen() { return builder_.topology.unseen; }

  const DiscoveryOptions& options_;
  bool only_known_;
  bool has_links_;
  TopologyBuilder builder_;
};

int GpuDiscovery::place(const std::string& bus_id, int numa) {
  const auto id = busIdOf(bus_id);
  if (!id) {
    unseen().push_back(fmt::format("a GPU whose bus id is told as \"{}\"", bus_id));
    return kNoNode;
  }
  int node = builder_.topology.find(*id);
  if (node == kNoNode && !only_known_) {
    node = addPciDevice(builder_.topology, options_.system, *id, TopologyKind::gpu, numa);
    if (nodeAt(node).pci.device_class == 0) nodeAt(node).pci.device_class = kGpuClass;
  }
  return node != kNoNode && nodeAt(node).kind == TopologyKind::gpu ? node : kNoNode;
}

void GpuDiscovery::take(const NvmlGpu& gpu) {
  const int node = place(gpu.bus_id, -1);
  if (node == kNoNode) return;
  GpuDetails& details = detailsOf(node);
  if (gpu.compute_capability > 0) details.compute_capability = gpu.compute_capability;
  if (!gpu.model.empty()) details.model = gpu.model;
}

void GpuDiscovery::take(const CudaDevice& gpu, int number) {
  const int node = place(gpu.bus_id, gpu.numa);
  if (node == kNoNode) return;
  GpuDetails& details = detailsOf(node);
  details.device = number;
  details.reached_by_rdma = gpu.reached_by_rdma;
  if (gpu.compute_capability > 0) details.compute_capability = gpu.compute_capability;
  if (details.model.empty()) details.model = gpu.model;
}

void GpuDiscovery::connect(int from, const NvmlLink& link) {
  const auto id = busIdOf(link.bus_id);
  const int known = id ? builder_.topology.find(*id) : kNoNode;
  const TopologyKind kind = known == kNoNode ? TopologyKind::pci_bridge : nodeAt(known).kind;
  if (link.end == NvmlLink::End::nvswitch || kind == TopologyKind::nvswitch) {
    builder_.connect({.from = from, .to = builder_.nvSwitch()});
  } else if (kind == TopologyKind::gpu && known != from) {
    builder_.connect({.from = from, .to = known});
  } else {
    unseen().push_back(fmt::format("what an NVLink of {} ends at: NVML says \"{}\"",
                                   builder_.topology.label(from), link.bus_id));
  }
}

void GpuDiscovery::connect(const NvmlGpu& gpu) {
  const auto id = busIdOf(gpu.bus_id);
  const int from = id ? builder_.topology.find(*id) : kNoNode;
  if (from == kNoNode || nodeAt(from).kind != TopologyKind::gpu) return;
  for (const NvmlLink& link : gpu.links) connect(from, link);
  if (gpu.c2c_count == 0) return;
  builder_.connect({.from = from,
                    .to = builder_.topology.numaOf(from),
                    .count = gpu.c2c_count,
                    .gbytes_per_s = gpu.c2c_gbytes_per_s,
                    .is_c2c = true});
}

void GpuDiscovery::sayUnseen(const NvmlView& nvml, const CudaView& cuda) {
  const bool has_gpus = !builder_.topology.all(TopologyKind::gpu).empty();
  if (!nvml.problem.empty() && has_gpus)
    unseen().push_back(fmt::format("NVLinks and NVSwitches, by NVML: {}", nvml.problem));
  if (!cuda.problem.empty() && has_gpus)
    unseen().push_back(fmt::format("which GPUs this process may use, by CUDA: {}", cuda.problem));
  if (!has_gpus) {
    unseen().push_back(fmt::format("GPUs: none; NVML: {}; CUDA: {}",
                                   nvml.problem.empty() ? "none" : nvml.problem,
                                   cuda.problem.empty() ? "none" : cuda.problem));
  }
  for (const auto& [a, b] : cuda.without_peer_access) {
    unseen().push_back(fmt::format("peer access between CUDA's devices {} and {}: they have none", a, b));
  }
}

Topology GpuDiscovery::run() {
  const NvmlView nvml = askNvml(options_.nvml);
  const CudaView cuda = askCuda();
  for (const NvmlGpu& gpu : nvml.gpus) take(gpu);
  // CUDA numbers those that this process may use; what a file says is of another one.
  for (const int gpu : builder_.topology.all(TopologyKind::gpu)) {
    if (!cuda.devices.empty()) detailsOf(gpu).device = -1;
  }
  for (std::size_t i = 0; i < cuda.devices.size(); ++i) take(cuda.devices[i], static_cast<int>(i));
  for (const NvmlGpu& gpu : nvml.gpus) {
    if (!has_links_) connect(gpu);
  }
  sayUnseen(nvml, cuda);
  builder_.complete();  // the links; who numbers devices does it last
  return std::move(builder_.topology);
}

}  // namespace

void addGpus(Topology& topology, const DiscoveryOptions& options, bool only_known) {
  topology = GpuDiscovery(topology, options, only_known).run();
}

}  // namespace tutti
