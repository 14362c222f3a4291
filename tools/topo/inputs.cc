#include "tools/topo/inputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "runtime/topology/discovery.h"
#include "runtime/topology/hwloc_xml.h"
#include "runtime/topology/plain_text.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

std::string thisHost() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "this host";
  name.resize(name.find('\0'));
  return name;
}

std::string stemOf(const std::string& path) {
  const std::string stem = std::filesystem::path(path).stem().string();
  return plainText(stem.empty() ? path : stem);
}

Inputs load(const std::string& path, const Options& options) {
  TopologyFile file = readTopologyFile(path);
  if (file.hosts.empty()) throw std::invalid_argument(plainText(path) + " holds no host");
  Inputs inputs;
  for (std::size_t i = 0; i < file.hosts.size(); ++i) {
    std::string name = file.hosts.size() == 1 ? stemOf(path) : fmt::format("{}-{}", stemOf(path), i);
    if (options.nvlinks) addNvlinks(file.hosts[i], *options.nvlinks, name);
    inputs.hosts.push_back({std::move(name), std::move(file.hosts[i])});
  }
  inputs.add(path, file.remarks);
  return inputs;
}

Inputs loadThisMachine(const Options& options) {
  Inputs inputs{.hosts = {{thisHost(), discoverTopology()}}, .remarks = {}, .notices = {}};
  if (options.nvlinks) addNvlinks(inputs.hosts.front().topology, *options.nvlinks, inputs.hosts.front().name);
  return inputs;
}

}  // namespace

void Inputs::add(const std::string& path, const std::vector<std::string>& remarks_on_it) {
  if (remarks_on_it.empty()) return;
  const bool has_more = remarks_on_it.back().starts_with("and ");
  notices.push_back(fmt::format("{}{} on {}; --check lists them", has_more ? "more than " : "",
                                countWords(remarks_on_it.size() - (has_more ? 1 : 0), "remark"),
                                plainText(path)));
  for (const std::string& remark : remarks_on_it) remarks.push_back(plainText(path) + ": " + remark);
}

Inputs loadInputs(const Options& options) {
  Inputs once;
  if (options.inputs.empty()) once = loadThisMachine(options);
  for (const std::string& path : options.inputs) {
    Inputs more = load(path, options);
    std::ranges::move(more.hosts, std::back_inserter(once.hosts));
    std::ranges::move(more.remarks, std::back_inserter(once.remarks));
    std::ranges::move(more.notices, std::back_inserter(once.notices));
  }
  if (options.hosts == 1) return once;
  Inputs all{.hosts = {}, .remarks = std::move(once.remarks), .notices = std::move(once.notices)};
  for (const NamedHost& host : once.hosts) {
    for (int copy = 0; copy < options.hosts; ++copy)
      all.hosts.push_back({fmt::format("{}-{}", host.name, copy), host.topology});
  }
  return all;
}

Inputs loadOne(const std::string& path, const Options& options) {
  Inputs inputs = load(path, options);
  if (inputs.hosts.size() > 1)
    throw std::invalid_argument(
        fmt::format("--compare {}: it holds {} hosts, expected one", path, inputs.hosts.size()));
  return inputs;
}

}  // namespace tutti::topo
