#include "tools/topo/json_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "tools/findings/report.h"
#include "tools/topo/matrix_text.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

using Json = nlohmann::ordered_json;

/// null for what is unknown or does not exist.
Json nodeNumber(int node) { return node == kNoNode ? Json() : Json(node); }
Json known(double value) { return value > 0 ? Json(value) : Json(); }

Json linkJson(const TopologyPaths& paths, int node) {
  const PciLink& link = nodeAt(paths.topology(), node).link;
  return {{"gtransfers_per_s", known(link.gtransfers_per_s)},
          {"width", known(link.width)},
          {"most_gtransfers_per_s", known(link.most_gtransfers_per_s)},
          {"most_width", known(link.most_width)},
          {"gbytes_per_s", linkGBytes(paths, node)}};
}

Json cpuJson(const CpuDetails& cpu) {
  return {{"numa", cpu.numa},
          {"socket", cpu.package >= 0 ? Json(cpu.package) : Json()},
          {"cpus", cpu.cpus},
          {"caches", cpu.caches},
          {"architecture", cpu.architecture},
          {"vendor", cpu.vendor},
          {"family", cpu.family},
          {"model", cpu.model}};
}

Json gpuJson(const GpuDetails& gpu) {
  return {{"device", gpu.device >= 0 ? Json(gpu.device) : Json()},
          {"compute_capability", known(gpu.compute_capability)},
          {"model", gpu.model},
          {"reached_by_rdma", gpu.reached_by_rdma}};
}

Json netJson(const NetDetails& net) {
  return {{"name", net.name},      {"device", net.device >= 0 ? Json(net.device) : Json()},
          {"port", net.port},      {"mbits_per_s", known(net.mbits_per_s)},
          {"guid", net.guid},      {"reaches_gpus", net.reaches_gpus},
          {"reduces", net.reduces}};
}

Json nodeJson(const TopologyPaths& paths, int node) {
  const TopologyNode& it = nodeAt(paths.topology(), node);
  Json json{{"kind", wordOf(it.kind)},
            {"label", shortLabel(paths.topology(), node)},
            {"parent", nodeNumber(it.parent)}};
  if (!it.bus_id.empty()) {
    json["bus_id"] = it.bus_id;
    json["link"] = linkJson(paths, node);
  }
  if (it.kind == TopologyKind::numa_node) json["cpu"] = cpuJson(it.cpu);
  if (it.kind == TopologyKind::gpu) json["gpu"] = gpuJson(it.gpu);
  if (it.kind == TopologyKind::net) json["net"] = netJson(it.net);
  return json;
}

Json nvlinksJson(const TopologyPaths& paths) {
  Json json = Json::array();
  for (int node = 0; node < static_cast<int>(paths.topology().nodes.size()); ++node) {
    for (const NvlinkSum& sum : nvlinksOf(paths, node)) {
      json.push_back({{"from", node},
                      {"to", sum.to},
                      {"count", sum.count},
                      {"gbytes_per_s", sum.gbytes_per_s},
                      {"c2c", sum.is_c2c}});
    }
  }
  return json;
}

Json matrixJson(const TopologyPaths& paths) {
  const std::vector<int> endpoints = endpointsOf(paths.topology());
  Json json{{"nodes", endpoints}, {"classes", Json::array()}, {"gbytes_per_s", Json::array()}};
  for (const int from : endpoints) {
    Json classes = Json::array();
    Json speeds = Json::array();
    for (const int to : endpoints) {
      const Path& path = paths.between(from, to);
      classes.push_back(name(path.path_class));
      speeds.push_back(path.gbytes_per_s);
    }
    json["classes"].push_back(std::move(classes));
    json["gbytes_per_s"].push_back(std::move(speeds));
  }
  return json;
}

Json graphJson(const ChannelGraph& graph) {
  Json json{{"pattern", static_cast<int>(graph.pattern)},
            {"intra_gbytes_per_s", graph.intra_gbytes_per_s},
            {"inter_gbytes_per_s", graph.inter_gbytes_per_s},
            {"intra_class", name(graph.intra_class)},
            {"inter_class", name(graph.inter_class)},
            {"crosses_nics", graph.crosses_nics},
            {"cut_short", graph.was_cut_short},
            {"channels", Json::array()}};
  for (const HostChannel& channel : graph.channels) {
    json["channels"].push_back({{"net_in", nodeNumber(channel.net_in)},
                                {"net_out", nodeNumber(channel.net_out)},
                                {"order", channel.order}});
  }
  return json;
}

Json shapeJson(const Machine& machine, std::size_t shape) {
  const TopologyPaths& paths = machine.paths[shape];
  Json json{{"seats", machine.cluster.shapes[shape].seats}, {"nodes", Json::array()}};
  for (int node = 0; node < static_cast<int>(paths.topology().nodes.size()); ++node)
    json["nodes"].push_back(nodeJson(paths, node));
  json["nvlinks"] = nvlinksJson(paths);
  json["unseen"] = paths.topology().unseen;
  json["matrix"] = matrixJson(paths);
  json["rings"] = graphJson(machine.search.rings[shape]);
  json["trees"] = graphJson(machine.search.trees[shape]);
  return json;
}

Json treeJson(const std::vector<TreePlace>& places) {
  Json json = Json::array();
  for (const TreePlace& place : places) json.push_back({{"up", nodeNumber(place.up)}, {"down", place.down}});
  return json;
}

}  // namespace

Json toJson(const Machine& machine, const Findings& findings) {
  Json json{{"format", 1}, {"version", TUTTI_VERSION}, {"hosts", Json::array()}, {"shapes", Json::array()}};
  for (const Cluster::Host& host : machine.cluster.hosts)
    json["hosts"].push_back({{"name", host.name}, {"shape", host.shape}, {"ranks", host.ranks}});
  for (std::size_t shape = 0; shape < machine.cluster.shapes.size(); ++shape)
    json["shapes"].push_back(shapeJson(machine, shape));
  json["channels"] = Json::array();
  for (const ClusterChannel& channel : machine.search.channels) {
    json["channels"].push_back(
        {{"ring", channel.ring},
         {"trees", Json::array({treeJson(channel.trees[0]), treeJson(channel.trees[1])})}});
  }
  json["reasons"] = machine.search.reasons;
  json["bandwidth"] = Json::array();
  for (const PredictedBandwidth& it : machine.bandwidths) {
    json["bandwidth"].push_back({{"collective", name(it.collective)},
                                 {"bus_gbytes_per_s", it.bus_gbytes_per_s},
                                 {"algorithm_gbytes_per_s", it.algorithm_gbytes_per_s},
                                 {"algorithm", it.algorithm},
                                 {"limit", it.limit}});
  }
  json["findings"] = tutti::toJson(machine.cluster.hosts.front().name, "topology", findings)["findings"];
  return json;
}

}  // namespace tutti::topo
