#include "tools/topo/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/topology/bandwidths.h"
#include "tools/topo/matrix_text.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

/// The checks of one shape of host. Each adds what it found, or an ok line for what it looked at.
class HostCheck {
 public:
  HostCheck(const TopologyPaths& paths, std::string area)
      : paths_(paths), topology_(paths.topology()), area_(std::move(area)), gpus_(gpusInOrder(topology_)) {
    std::ranges::copy_if(endpointsOf(topology_), std::back_inserter(ports_), [&](int node) {
      return at(node).kind == TopologyKind::net || at(node).kind == TopologyKind::nic;
    });
  }

  Findings findings() && {
    checkPciLinks();
    checkEqualLinks();
    checkPorts();
    checkPlaces();
    checkRails();
    checkNvlinks();
    for (const std::string& unseen : topology_.unseen) add(Level::note, "not seen", unseen);
    return std::move(findings_);
  }

 private:
  const TopologyNode& at(int node) const { return nodeAt(topology_, node); }
  void add(Level level, std::string check, std::string seen, std::string todo = "") {
    findings_.push_back({level, area_, std::move(check), std::move(seen), std::move(todo)});
  }
  /// True where findings were added since there were `before`.
  bool hasFound(std::size_t before) const { return findings_.size() > before; }

  void checkPciLinks();
  void checkEqualLinks();
  void checkPorts();
  void checkPlaces();
  void checkRails();
  void checkNvlinks();

  bool isWayToGpus(int bridge) const;
  bool isCard(int port) const;
  bool isFast(int port) const;
  std::vector<int> fastPorts() const;
  PathClass bestClass(int from, const std::vector<int>& to) const;

  const TopologyPaths& paths_;
  const Topology& topology_;
  std::string area_;
  std::vector<int> gpus_;
  std::vector<int> ports_;
  Findings findings_;
};

void HostCheck::checkPciLinks() {
  const std::size_t before = findings_.size();
  std::size_t known = 0;
  for (std::size_t i = 0; i < topology_.nodes.size(); ++i) {
    const TopologyNode& node = topology_.nodes[i];
    if (node.link.most_width > 0 || node.link.most_gtransfers_per_s > 0) ++known;
    if (!isBelowMost(node.link)) continue;
    const bool is_gpu = node.kind == TopologyKind::gpu;
    const bool is_narrow = node.link.width < node.link.most_width;
    add(Level::warning, "PCI link of " + shortLabel(topology_, static_cast<int>(i)),
        fmt::format("{} runs at {}, could do {}", node.bus_id, trainedWords(node.link), mostWords(node.link)),
        fmt::format(
            "{}reseat the card, look at the slot's settings in the BIOS, and at LnkSta of `lspci -vv -s {}`",
            is_gpu && !is_narrow ? "GPUs that idle lower their speed: look again under load; else " : "",
            node.bus_id));
  }
  if (!hasFound(before) && known > 0)
    add(Level::ok, "PCI links", countWords(known, "link") + ", each as fast as device and slot can be");
}

/// Files seldom say what a link could do; its likes tell.
void HostCheck::checkEqualLinks() {
  for (const TopologyKind kind : {TopologyKind::gpu, TopologyKind::nic, TopologyKind::pci_bridge}) {
    std::vector<int> devices = topology_.all(kind);
    std::erase_if(devices, [&](int device) { return at(device).bus_id.empty(); });
    if (kind == TopologyKind::pci_bridge)
      std::erase_if(devices, [&](int bridge) { return !isWayToGpus(bridge); });
    // Cards of different models may differ.
    std::map<std::pair<int, int>, double> most;
    const auto model = [&](int device) {
      return std::pair<int, int>(at(device).pci.vendor, at(device).pci.device);
    };
    for (const int device : devices)
      most[model(device)] = std::max(most[model(device)], pciGBytes(at(device).link));
    for (const int device : devices) {
      const TopologyNode& node = at(device);
      if (isBelowMost(node.link) || pciGBytes(node.link) >= most[model(device)]) continue;
      add(Level::warning, "PCI link of " + shortLabel(topology_, device),
          fmt::format("{} has {} ({}), others of its model {}", node.bus_id, trainedWords(node.link),
                      gbytesWords(pciGBytes(node.link)), gbytesWords(most[model(device)])),
          "move it to a slot as wide as theirs, or reseat it");
    }
  }
}

/// From a CPU: what all below a switch shares.
bool HostCheck::isWayToGpus(int bridge) const {
  if (at(bridge).parent == kNoNode || at(at(bridge).parent).kind != TopologyKind::numa_node) return false;
  return std::ranges::any_of(gpus_, [&](int node) {
    while (node != kNoNode && node != bridge) node = at(node).parent;
    return node == bridge;
  });
}

bool HostCheck::isCard(int port) const {
  const TopologyNode& node = at(port);
  if (node.kind == TopologyKind::nic) return !node.bus_id.empty();
  return node.parent != kNoNode && !at(node.parent).bus_id.empty();
}

/// Management ports are not what data goes over.
bool HostCheck::isFast(int port) const {
  double most = 0;
  for (const int other : ports_) most = std::max(most, netGBytes(at(other).net));
  return netGBytes(at(port).net) * 2 > most;
}

std::vector<int> HostCheck::fastPorts() const {
  std::vector<int> fast;
  std::ranges::copy_if(ports_, std::back_inserter(fast), [&](int port) { return isFast(port); });
  return fast;
}

void HostCheck::checkPorts() {
  double most = 0;
  for (const int port : ports_) most = std::max(most, at(port).net.mbits_per_s);
  for (const int port : ports_) {
    const TopologyNode& node = at(port);
    const std::string check = "port " + shortLabel(topology_, port);
    if (node.kind != TopologyKind::net) continue;
    if (node.net.port > 0 && node.net.mbits_per_s < most && node.net.mbits_per_s > 0) {
      add(Level::warning, check, fmt::format("{}, others {:g} Gb/s", portSpeedWords(node.net), most / 1000),
          "look at the cable and the switch's port; ibstat shows the rate");
    }
    if (node.parent == kNoNode || at(node.parent).bus_id.empty() || node.net.mbits_per_s <= 0) continue;
    const double pci = linkGBytes(paths_, node.parent);
    // PCI's figure is less its packets' headers, the port's is not.
    constexpr double kHeaders = 0.96;
    if (pci < kHeaders * netGBytes(node.net)) {
      add(Level::warning, check,
          fmt::format("{} are {}, its PCI link gives {}", portSpeedWords(node.net),
                      gbytesWords(netGBytes(node.net)), gbytesWords(pci)),
          "a slot with more lanes or of a newer generation");
    }
  }
}

PathClass HostCheck::bestClass(int from, const std::vector<int>& to) const {
  PathClass best = PathClass::dis;
  for (const int node : to) best = std::min(best, paths_.between(from, node).path_class);
  return best;
}

void HostCheck::checkPlaces() {
  const std::vector<int> fast = fastPorts();
  if (gpus_.empty() || fast.empty()) return;
  const std::size_t before = findings_.size();
  // Interfaces that are no cards stand in no slot.
  if (std::ranges::none_of(fast, [&](int port) { return isCard(port); })) return;
  const auto isTold = [&](int node) { return topology_.isNumaTold(node); };
  const bool are_gpus_told = std::ranges::all_of(gpus_, isTold);
  const bool are_ports_told = std::ranges::all_of(fast, isTold);
  for (const int port : fast) {
    if (!are_gpus_told || !isTold(port)) continue;
    if (!isCard(port) || bestClass(port, gpus_) < PathClass::sys) continue;
    add(Level::warning, "place of " + shortLabel(topology_, port),
        "every GPU is on another NUMA node: what it carries passes the link between them",
        "move the card to a slot beside GPUs");
  }
  // A card that moves is the remedy for both: GPUs are named where there is another card to be near to.
  for (const int gpu : gpus_) {
    if (!are_ports_told || !isTold(gpu)) continue;
    // Through a peer GPU counts as the way to the NIC that the peer has beside it: not this GPU's own.
    const bool is_near = std::ranges::any_of(fast, [&](int port) {
      return topology_.numaOf(port) == topology_.numaOf(gpu) || bestClass(gpu, {port}) <= PathClass::pxb;
    });
    if (is_near) continue;
    add(Level::warning, "place of " + shortLabel(topology_, gpu), "no NIC is on its NUMA node",
        "move a card to a slot beside it; until then its data for other hosts passes the link between NUMA "
        "nodes");
  }
  if (!are_gpus_told || !are_ports_told) {
    add(Level::note, "places",
        "nobody told the NUMA nodes of some GPUs or NICs: what depends on them is not judged");
  } else if (!hasFound(before)) {
    add(Level::ok, "places", "every NIC is on a NUMA node with GPUs, every GPU on one with a NIC");
  }
}

void HostCheck::checkRails() {
  const std::size_t rails = fastPorts().size();
  if (gpus_.size() < 2) return;
  const std::string seen =
      fmt::format("{} for {}", countWords(rails, "port"), countWords(gpus_.size(), "GPU"));
  if (rails == 0) {
    add(Level::note, "rails", "no NIC: no way to other hosts");
  } else if (rails * 2 < gpus_.size()) {
    add(Level::warning, "rails", seen + ": more than two share one",
        "one port per GPU, or per two GPUs, is usual");
  } else if (gpus_.size() % rails != 0 && rails % gpus_.size() != 0) {
    add(Level::warning, "rails", seen + ": some carry more than others",
        "look whether a NIC is missing or down");
  } else {
    add(Level::ok, "rails", seen);
  }
}

void HostCheck::checkNvlinks() {
  if (topology_.nvlinks.empty()) {
    constexpr std::size_t kUsual = 8;
    const bool is_datacenter = std::ranges::all_of(gpus_, [&](int gpu) {
      return at(gpu).pci.device_class >> 8 == 0x0302;  // without a display
    });
    if (is_datacenter && gpus_.size() >= kUsual)
      add(Level::note, "NVLinks",
          fmt::format("none is known of {}; files often leave them out: --assume-nvlink adds them",
                      countWords(gpus_.size(), "GPU")));
    return;
  }
  std::map<int, int> counts;  // by how many, how many GPUs
  const auto countOf = [&](int gpu) {
    int count = 0;
    for (const NvLinks& links : topology_.nvlinks)
      count += links.from == gpu && !links.is_c2c ? links.count : 0;
    return count;
  };
  for (const int gpu : gpus_) ++counts[countOf(gpu)];
  if (counts.size() == 1) {
    add(Level::ok, "NVLinks", fmt::format("{} per GPU", counts.begin()->first));
    return;
  }
  const int most = counts.rbegin()->first;
  for (const int gpu : gpus_) {
    if (countOf(gpu) == most) continue;
    add(Level::warning, "NVLinks of " + shortLabel(topology_, gpu),
        fmt::format("{}, others have {}", countOf(gpu), most),
        "nvidia-smi nvlink -s shows links that are down; look at bridges and at the fabric manager");
  }
}

}  // namespace

Findings checkMachine(const Machine& machine, const std::vector<std::string>& remarks) {
  Findings findings;
  for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape) {
    Findings more = HostCheck(machine.paths[shape], namesOf(machine.hostsOf(shape))).findings();
    findings.insert(findings.end(), more.begin(), more.end());
  }
  if (machine.cluster.shapes.size() > 1) {
    findings.push_back({Level::warning, "All hosts", "shapes",
                        fmt::format("{} different ones among {}", machine.cluster.shapes.size(),
                                    countWords(machine.cluster.hosts.size(), "host")),
                        "the least of them decides; tutti-topo --compare A B shows what differs"});
  } else if (machine.cluster.hosts.size() > 1) {
    findings.push_back({Level::ok, "All hosts", "shapes", "all hosts are alike"});
  }
  for (const std::string& remark : remarks) findings.push_back({Level::note, "Input", "remark", remark});
  return findings;
}

}  // namespace tutti::topo
