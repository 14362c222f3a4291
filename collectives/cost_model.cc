#include "collectives/cost_model.h"

#include <algorithm>
#include <array>

namespace tutti {
namespace {

struct TransportCost {
  std::string_view transport;
  LinkCost cost;
};

// On host memory: `link_perf --transport T -b 8 -e 16M -f 128 -n 300`, the latency of 8 bytes and the
// bandwidth of 16 MiB (the table in bench/link/README.md: two cores of an AMD EPYC, tcp over loopback).
//
// Not measured, for want of the hardware: "self" is a copy at the pace of inproc. cuda_ipc and peer_access
// take the latency per hop over NVLink of NCCL's own model (tuning.cc, ring, Simple) and what NVLink 4
// carries each way; pinned that per hop over PCIe and what PCIe 4.0 x16 carries. verbs takes the latency per
// hop between nodes of that model, and a port of 100 Gbit/s: over Soft-RoCE in an emulated machine it was
// 33 us and 70 MB/s, which says nothing about cards.
constexpr std::array kTable{
    TransportCost{"self", {0, 13.1}},      TransportCost{"inproc", {0.30, 13.1}},
    TransportCost{"shm", {0.28, 12.6}},    TransportCost{"tcp", {5.1, 2.27}},
    TransportCost{"cuda_ipc", {3.4, 450}}, TransportCost{"peer_access", {3.4, 450}},
    TransportCost{"pinned", {5.7, 25}},    TransportCost{"verbs", {14, 12.5}},
};

/// A ring of n ranks, or a chain: steps and bytes for blocks of `block` bytes, or a vector.
Effort ringEffort(Collective collective, double n, double bytes) {
  switch (collective) {
    case Collective::all_reduce:
      return {2 * (n - 1), 2 * (n - 1) / n * bytes};
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return {n - 1, (n - 1) * bytes};
    default:  // the chains
      return {n - 1, bytes};
  }
}

Effort directEffort(Collective collective, double n, double bytes) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return {2, 2 * (n - 1) / n * bytes};  // contributions there, results back
    default:                                // a block, or the whole vector of a root, to or from every peer
      return {1, (n - 1) * bytes};
  }
}

Effort flatEffort(const Plan& plan) {
  const double n = plan.nranks;
  const double bytes =
      static_cast<double>(plan.descriptor.count) * static_cast<double>(sizeOf(plan.descriptor.type));
  switch (plan.algorithm) {
    case Algorithm::single:
      return {0, bytes};
    case Algorithm::ring:
      return ringEffort(plan.descriptor.collective, n, bytes);
    case Algorithm::direct:
      return directEffort(plan.descriptor.collective, n, bytes);
    case Algorithm::one_shot:
      return {1, (n - 1) * bytes};
    case Algorithm::hierarchical:
      break;
  }
  return {};
}

/// All-reduce: reduce-scatter inside hosts, each part over the hosts (two exchange, more make a ring),
/// all-gather inside.
PlanEffort hierarchicalEffort(const Plan& plan, std::int32_t hosts) {
  const double m = plan.ranks_per_host;
  const double bytes =
      static_cast<double>(plan.descriptor.count) * static_cast<double>(sizeOf(plan.descriptor.type));
  const Effort across =
      hosts == 2 ? Effort{1, bytes / m} : ringEffort(Collective::all_reduce, hosts, bytes / m);
  return {{2, 2 * (m - 1) / m * bytes}, across};
}

}  // namespace

LinkCost linkCost(std::string_view transport) {
  const auto find = [](std::string_view name) {
    return std::ranges::find(kTable, name, &TransportCost::transport);
  };
  const auto* found = find(transport);
  return found != kTable.end() ? found->cost : find("tcp")->cost;
}

PlanEffort effortOf(const Plan& plan, std::int32_t hosts) {
  if (plan.algorithm == Algorithm::hierarchical) return hierarchicalEffort(plan, hosts);
  const Effort flat = flatEffort(plan);
  return hosts > 1 ? PlanEffort{{}, flat} : PlanEffort{flat, {}};
}

double estimateMicroseconds(const Plan& plan, std::int32_t hosts, const LinkCosts& costs) {
  const PlanEffort effort = effortOf(plan, hosts);
  return costs.inside.microseconds(effort.inside.steps, effort.inside.bytes) +
         costs.between.microseconds(effort.between.steps, effort.between.bytes);
}

}  // namespace tutti
