#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/core/system_files.h"
#include "runtime/core/unique_fd.h"
#include "runtime/topology/sysfs.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// "node12" -> 12; -1: another name.
int nodeNumber(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (!name.starts_with("node")) return -1;
  const std::vector<int> number = numbersOfList(std::string_view(name).substr(4));
  return number.size() == 1 ? number[0] : -1;
}

/// What the first processor says of itself: the others are alike, and the whole file is long.
void readProcessor(CpuDetails& cpu, const fs::path& cpuinfo) {
  const UniqueFd file(::open(cpuinfo.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> bytes{};
  const ssize_t count = file ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  std::string_view rest(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string_view field = line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1);
    const std::string_view value = line.substr(colon + 2);
    const std::vector<int> number = numbersOfList(value);
    if (field == "vendor_id") cpu.vendor = value;
    if (field == "cpu family" && number.size() == 1) cpu.family = number[0];
    if (field == "model" && number.size() == 1) cpu.model = number[0];
  }
}

std::string architecture() {
  utsname names{};
  ::uname(&names);
  const std::string_view machine = names.machine;
  if (machine.starts_with("aarch64")) return "arm64";
  return machine.starts_with("ppc64") ? "ppc64" : std::string(machine);
}

/// Those that share a last-level cache, of these CPUs.
std::vector<std::vector<int>> cachesOf(const std::vector<int>& cpus, const fs::path& system) {
  std::vector<std::vector<int>> caches;
  std::vector<int> covered;
  for (const int cpu : cpus) {
    if (std::ranges::find(covered, cpu) != covered.end()) continue;
    const fs::path folder = system / fmt::format("devices/system/cpu/cpu{}/cache", cpu);
    std::vector<int> sharing;
    for (int index = 4; index >= 0 && sharing.empty(); --index) {
      sharing = numbersOfList(firstLine(folder / fmt::format("index{}/shared_cpu_list", index)));
    }
    std::vector<int> here;
    std::ranges::set_intersection(sharing, cpus, std::back_inserter(here));
    if (here.empty()) return {};
    covered.insert(covered.end(), here.begin(), here.end());
    caches.push_back(std::move(here));
  }
  return caches;
}

/// All CPUs, where no NUMA nodes are told.
std::vector<int> onlineCpus(const fs::path& system) {
  std::vector<int> cpus = numbersOfList(firstLine(system / "devices/system/cpu/online"));
  if (!cpus.empty()) return cpus;
  const long count = ::sysconf(_SC_NPROCESSORS_ONLN);
  for (int cpu = 0; cpu < std::max(count, 1L); ++cpu) cpus.push_back(cpu);
  return cpus;
}

TopologyNode numaNode(int number, std::vector<int> cpus, const CpuDetails& processor,
                      const fs::path& system) {
  TopologyNode node{.kind = TopologyKind::numa_node, .cpu = processor};
  node.cpu.numa = number;
  node.cpu.package = static_cast<int>(numberIn(
      system / fmt::format("devices/system/cpu/cpu{}/topology/physical_package_id", cpus.front()), -1));
  node.cpu.caches = cachesOf(cpus, system);
  node.cpu.cpus = std::move(cpus);
  return node;
}

}  // namespace

bool tellsCpus(const fs::path& system) {
  const auto entries = entriesOf(system / "devices/system/node");
  return std::ranges::any_of(entries, [](const fs::path& folder) {
    return nodeNumber(folder) >= 0 && !numbersOfList(firstLine(folder / "cpulist")).empty();
  });
}

void addCpus(Topology& topology, const fs::path& system, const fs::path& cpuinfo) {
  CpuDetails processor;
  processor.architecture = architecture();
  readProcessor(processor, cpuinfo);
  for (const fs::path& folder : entriesOf(system / "devices/system/node")) {
    std::vector<int> cpus = numbersOfList(firstLine(folder / "cpulist"));
    // Nodes without CPUs are memory only: of devices, for example.
    if (nodeNumber(folder) < 0 || cpus.empty()) continue;
    topology.nodes.push_back(numaNode(nodeNumber(folder), std::move(cpus), processor, system));
  }
  std::ranges::sort(topology.nodes, {}, [](const TopologyNode& node) { return node.cpu.numa; });
  if (!topology.nodes.empty()) return;
  topology.unseen.push_back(fmt::format("NUMA nodes: {} tells none, so all CPUs are taken for one",
                                        (system / "devices/system/node").string()));
  topology.nodes.push_back(numaNode(0, onlineCpus(system), processor, system));
}

}  // namespace tutti
