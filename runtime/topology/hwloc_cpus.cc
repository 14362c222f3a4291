#include "runtime/topology/hwloc_cpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "runtime/topology/notation.h"

namespace tutti {
namespace {

using pugi::xml_node;

constexpr int kMostNumber = 1 << 20;
constexpr std::size_t kMostNuma = 1024;  // of a host, as Linux

/// Depth first, no deeper than files may be.
void walk(XmlFile& file, xml_node object, int depth, const std::function<void(xml_node)>& visit) {
  if (depth > kMostXmlDepth)
    file.fail(object, fmt::format("more than {} <object> in each other", kMostXmlDepth));
  visit(object);
  for (const xml_node child : object.children("object")) walk(file, child, depth + 1, visit);
}

std::string architectureOf(std::string_view text) {
  if (text == "aarch64") return "arm64";
  if (text.substr(0, 5) == "ppc64") return "ppc64";
  return std::string(text);
}

int numberOr(std::string_view text, int otherwise) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && value >= 0 && value <= kMostNumber ? value : otherwise;
}

}  // namespace

bool isObject(xml_node element, std::string_view type) { return XmlFile::text(element, "type") == type; }

std::string_view infoOf(xml_node object, std::string_view name) {
  for (const xml_node info : object.children("info")) {
    if (XmlFile::text(info, "name") == name) return XmlFile::text(info, "value");
  }
  return {};
}

template <class Visit>
void HwlocCpus::forEach(std::string_view type, Visit visit) {
  walk(file_, file_.root().child("object"), 1, [&](xml_node object) {
    if (isObject(object, type)) visit(object);
  });
}

HwlocCpus::HwlocCpus(XmlFile& file) : file_(file) {
  const xml_node machine = file.root().child("object");
  readNumaNodes(machine);
  readPackages(machine);
  readCaches();
  for (CpuDetails& node : nodes_) node.architecture = architectureOf(infoOf(machine, "Architecture"));
}

std::vector<int> HwlocCpus::cpusOf(xml_node object) {
  auto cpus = cpusOfMask(file_.text(object, "cpuset"));
  if (!cpus) file_.failAttribute(object, "cpuset", "words in base 16, such as 0x000000ff,0xffff0000");
  return std::move(*cpus);
}

std::size_t HwlocCpus::nodeOf(xml_node object) {
  for (const int cpu : cpusOf(object)) {
    const auto it = node_of_cpu_.find(cpu);
    if (it != node_of_cpu_.end()) return it->second;
  }
  return 0;
}

void HwlocCpus::readNumaNodes(xml_node machine) {
  std::map<int, xml_node> objects;  // by number
  forEach("NUMANode", [&](xml_node object) {
    const int numa = file_.integerOr(object, "os_index", 0, kMostNumber, 0);
    const auto [it, is_new] = objects.try_emplace(numa, object);
    if (!is_new) {
      file_.fail(object, fmt::format("NUMA node {} is in line {} already", numa, file_.line(it->second)));
    }
    if (objects.size() > kMostNuma) file_.fail(object, "too many NUMA nodes");
  });
  for (const auto& [numa, object] : objects) addNode(object, numa);
  if (!nodes_.empty()) return;
  file_.remark(machine, "no NUMA node with CPUs: the machine is taken as one");
  addNode(machine, 0);
  if (nodes_.empty()) nodes_.emplace_back();
}

void HwlocCpus::addNode(xml_node object, int numa) {
  CpuDetails node;
  node.numa = numa;
  for (const int cpu : cpusOf(object)) {
    if (node_of_cpu_.try_emplace(cpu, nodes_.size()).second) node.cpus.push_back(cpu);
  }
  if (!node.cpus.empty()) {
    nodes_.push_back(std::move(node));
  } else if (isObject(object, "NUMANode")) {
    file_.remark(object, fmt::format("NUMA node {} has no CPUs of its own", numa));
  }
}

HwlocCpus::Model HwlocCpus::modelOf(xml_node object) {
  return {.package = file_.integerOr(object, "os_index", -1, kMostNumber, -1),
          .vendor = std::string(infoOf(object, "CPUVendor")),
          .family = numberOr(infoOf(object, "CPUFamilyNumber"), 0),
          .model = numberOr(infoOf(object, "CPUModelNumber"), 0)};
}

/// A node is of the package that has its first CPU.
void HwlocCpus::readPackages(xml_node machine) {
  const Model of_machine = modelOf(machine);
  std::map<int, Model> by_first_cpu;  // of nodes
  for (const CpuDetails& node : nodes_) {
    if (node.cpus.empty()) continue;
    by_first_cpu[node.cpus.front()] = of_machine;
    by_first_cpu[node.cpus.front()].package = -1;
  }
  forEach("Package", [&](xml_node package) {
    const Model model = modelOf(package);
    for (const int cpu : cpusOf(package)) {
      const auto it = by_first_cpu.find(cpu);
      if (it == by_first_cpu.end()) continue;
      it->second.package = model.package;
      if (!model.vendor.empty()) it->second = model;
    }
  });
  for (CpuDetails& node : nodes_) {
    if (node.cpus.empty()) continue;
    const Model& model = by_first_cpu[node.cpus.front()];
    node.package = model.package;
    node.vendor = model.vendor;
    node.family = model.family;
    node.model = model.model;
  }
}

/// Of the last level that there is. Level 1 is nobody's but a core's.
void HwlocCpus::readCaches() {
  for (const std::string_view level : {"L5Cache", "L4Cache", "L3Cache", "L2Cache"}) {
    std::map<int, int> cache_of_cpu;
    int caches = 0;
    forEach(level, [&](xml_node cache) {
      for (const int cpu : cpusOf(cache)) cache_of_cpu.try_emplace(cpu, caches);
      ++caches;
    });
    if (caches == 0) continue;
    for (CpuDetails& node : nodes_) {
      std::map<int, std::vector<int>> shared;
      for (const int cpu : node.cpus) {
        const auto it = cache_of_cpu.find(cpu);
        if (it != cache_of_cpu.end()) shared[it->second].push_back(cpu);
      }
      for (auto& [cache, cpus] : shared) node.caches.push_back(std::move(cpus));
    }
    return;
  }
}

}  // namespace tutti
