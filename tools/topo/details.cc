#include "tools/topo/details.h"

#include <fmt/format.h>

#include "runtime/topology/notation.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

void append(std::string& words, const std::string& more) {
  if (!more.empty()) words += (words.empty() ? "" : ", ") + more;
}

std::string nvlinkWords(const TopologyPaths& paths, int node) {
  std::string words;
  for (const NvlinkSum& sum : nvlinksOf(paths, node)) {
    append(words,
           fmt::format("{} to {} ({})",
                       countWords(static_cast<std::size_t>(sum.count), sum.is_c2c ? "C2C link" : "NVLink"),
                       shortLabel(paths.topology(), sum.to), gbytesWords(sum.gbytes_per_s)));
  }
  return words;
}

std::string numaDetails(const TopologyPaths& paths, int node) {
  const CpuDetails& cpu = nodeAt(paths.topology(), node).cpu;
  std::string words = cpu.package >= 0 ? fmt::format("socket {}", cpu.package) : "";
  append(words, cpu.cpus.empty() ? "" : "CPUs " + listOfCpus(cpu.cpus));
  append(words, processorWords(cpu));
  if (cpu.caches.size() > 1) append(words, fmt::format("{} last-level caches", cpu.caches.size()));
  const double socket = socketGBytesOf(paths, node);
  if (socket > 0) append(words, fmt::format("{} to other NUMA nodes", gbytesWords(socket)));
  return words;
}

}  // namespace

std::string detailsOf(const TopologyPaths& paths, int node) {
  const TopologyNode& it = nodeAt(paths.topology(), node);
  if (it.kind == TopologyKind::numa_node) return numaDetails(paths, node);
  std::string words = isBelowMost(it.link) ? "could do " + mostWords(it.link) : "";
  append(words, it.is_guessed ? "NUMA node guessed" : "");
  if (it.kind == TopologyKind::gpu) {
    append(words, it.gpu.model);
    append(words, capabilityWords(it.gpu));
    append(words, nvlinkWords(paths, node));
  }
  if (it.kind == TopologyKind::net) {
    append(words, it.net.reaches_gpus ? "GPUDirect RDMA" : "");
    append(words, it.net.reduces ? "in-network reductions" : "");
  }
  return words;
}

}  // namespace tutti::topo
