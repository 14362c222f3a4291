// tutti-topo: a machine's parts, paths, rings and bandwidth, and why. See --help.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/topology/graph_xml.h"
#include "runtime/topology/nccl_xml.h"
#include "tools/findings/report.h"
#include "tools/topo/channels_text.h"
#include "tools/topo/check.h"
#include "tools/topo/compare.h"
#include "tools/topo/dot_graph.h"
#include "tools/topo/inputs.h"
#include "tools/topo/json_report.h"
#include "tools/topo/matrix_text.h"
#include "tools/topo/options.h"
#include "tools/topo/svg_picture.h"
#include "tools/topo/tree_text.h"

namespace tutti::topo {
namespace {

constexpr int kFound = 1;

struct Said {
  std::string text;
  int exit_status = 0;
};

std::string dumped(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// The sections asked for, an empty line between; the tree where none is.
std::string sectionsText(const Machine& machine, const Findings& findings, const Options& options) {
  std::string text;
  const auto add = [&](bool is_wanted, auto&& section) {
    if (is_wanted) text += (text.empty() ? "" : "\n") + section();
  };
  add(options.wants_matrix, [&] { return matrixText(machine); });
  add(options.wants_rings, [&] { return ringsText(machine); });
  add(options.wants_trees, [&] { return treesText(machine); });
  add(options.wants_bandwidth, [&] { return bandwidthText(machine); });
  add(options.wants_check, [&] { return toText(fmt::format("tutti-topo {}", TUTTI_VERSION), findings); });
  return text.empty() ? treeText(machine) : text;
}

std::string xmlText(const Machine& machine, const Options& options) {
  if (!options.wants_rings && !options.wants_trees) {
    std::vector<Topology> hosts;
    for (const Cluster::Host& host : machine.cluster.hosts) hosts.push_back(machine.topologyOf(host.shape));
    return writeNcclXml(hosts);
  }
  if (machine.cluster.shapes.size() > 1)
    throw std::invalid_argument("--format xml with --rings or --trees: hosts of one shape only; these have " +
                                std::to_string(machine.cluster.shapes.size()));
  std::vector<ChannelGraph> graphs;
  if (options.wants_rings) graphs.push_back(machine.search.rings.front());
  if (options.wants_trees) graphs.push_back(machine.search.trees.front());
  return writeGraphXml(graphs, machine.topologyOf(0), machine.cluster.shapes.front().seats);
}

/// Beside what is shown: it does not say so.
void sayNotices(const Inputs& inputs) {
  for (const std::string& notice : inputs.notices) fmt::print(stderr, "tutti-topo: {}\n", notice);
}

Said show(const Options& options) {
  Inputs inputs = loadInputs(options);
  const Machine machine = makeMachine(std::move(inputs.hosts), options.machine);
  inputs.add(options.machine.graph, machine.remarks);
  if (options.format == Format::text && !options.wants_check) sayNotices(inputs);
  const Findings findings = checkMachine(machine, inputs.remarks);
  const int exit_status = options.wants_check ? exitStatus(findings) : 0;
  switch (options.format) {
    case Format::text:
      return {sectionsText(machine, findings, options), exit_status};
    case Format::json:
      return {dumped(toJson(machine, findings)), exit_status};
    case Format::xml:
      return {xmlText(machine, options)};
    case Format::dot:
      return {dotGraph(machine)};
    case Format::svg:
      return {svgPicture(machine)};
  }
  return {};
}

Said compare(const Options& options) {
  const auto load = [&](const std::string& path) {
    return makeMachine(loadOne(path, options).hosts, options.machine);
  };
  const Machine a = load(options.compared[0]);
  const Machine b = load(options.compared[1]);
  const bool is_equal = differencesOf(a.paths.front(), b.paths.front()).empty();
  return {options.format == Format::json ? dumped(compareJson(a, b)) : compareText(a, b),
          is_equal ? 0 : kFound};
}

/// Throws std::runtime_error with the system's words.
void write(const std::string& text, const std::string& path) {
  const bool is_file = !path.empty();
  std::ofstream file;
  errno = 0;
  if (is_file) file.open(path, std::ios::binary | std::ios::trunc);
  std::ostream& out = is_file ? file : std::cout;
  out << text << std::flush;
  if (!out)
    throw std::runtime_error(
        fmt::format("{} cannot be written: {}", is_file ? path : "standard output", std::strerror(errno)));
}

}  // namespace
}  // namespace tutti::topo

int main(int argc, char** argv) {
  using namespace tutti::topo;
  try {
    const auto [options, exit_status] = parseOptions(argc, argv);
    if (!options) return exit_status;
    const Said said = options->compared.empty() ? show(*options) : compare(*options);
    write(said.text, options->output);
    return said.exit_status;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti-topo: {}\n", error.what());
    return kBadUsage;
  }
}
