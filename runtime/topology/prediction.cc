#include "runtime/topology/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/topology/bandwidths.h"
#include "runtime/topology/legs.h"
#include "runtime/topology/traffic.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// As the *_perf programs have it: what a rank's hardware moves per byte of the message.
double busFactor(Collective collective, double n) {
  if (collective == Collective::broadcast || collective == Collective::reduce) return 1;
  return (collective == Collective::all_reduce ? 2 : 1) * (n - 1) / n;
}

/// Seconds for a gigabyte of message, and what takes them.
struct Duration {
  double seconds = 0;
  std::string limit;
};

/// Bytes that the busiest rank's cores touch in the direct programs, per byte of message: what `combine`
/// reads and writes of user memory, and what is copied into slots and out of them.
struct Touched {
  double combined = 0;
  double copied = 0;
};
Touched touchedBy(Collective collective, double n) {
  const double rest = (n - 1) / n;
  switch (collective) {
    case Collective::all_reduce:
      return {2, 4 * rest};  // inputs into slots, results out of them
    case Collective::reduce_scatter:
      return {1 + 1 / n, 2 * rest};
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::gather:
      return {2, 2 * rest};
    case Collective::broadcast:
      return {2, 2 * (n - 2)};  // the root fills n - 1 slots while the others read one
    case Collective::reduce:
      return {1 + 1 / n, 4 * rest};
    case Collective::scatter:
      return {2 / n, 2 * rest};
  }
  return {};
}

std::string bytesWords(double bytes) {
  const std::string number = fmt::format("{:.3g}", bytes);
  return number + (number == "1" ? " byte" : " bytes");
}

class Predictor {
 public:
  Predictor(const Cluster& cluster, const SearchResult& result, const HostMemoryCosts& costs)
      : cluster_(cluster), result_(result), costs_(costs) {
    for (const Cluster::HostShape& shape : cluster.shapes) paths_.emplace_back(*shape.topology);
    for (const Cluster::Host& host : cluster.hosts) nranks_ += static_cast<int>(host.ranks.size());
  }

  PredictedBandwidth predict(Collective collective) const {
    PredictedBandwidth predicted{.collective = collective, .algorithm{}, .limit{}};
    predicted.algorithm = algorithmFor(collective, cluster_);
    if (nranks_ == 1) {
      predicted.limit = "one rank: nothing is sent";
      return predicted;
    }
    Duration longest = ofMemory(collective);
    for (const std::size_t host : differentHosts()) {
      Duration duration = ofLinks(collective, host);
      if (duration.seconds > longest.seconds) longest = std::move(duration);
    }
    predicted.limit = longest.limit;
    if (longest.seconds == 0) {
      predicted.limit = "the ranks' own memory, which was not measured";
      return predicted;
    }
    predicted.algorithm_gbytes_per_s = 1 / longest.seconds;
    predicted.bus_gbytes_per_s = busFactor(collective, nranks_) / longest.seconds;
    return predicted;
  }

 private:
  /// One of each shape, and rank 0's.
  std::vector<std::size_t> differentHosts() const {
    std::map<std::size_t, std::size_t> by_shape;
    std::vector<std::size_t> hosts;
    for (std::size_t h = 0; h < cluster_.hosts.size(); ++h) {
      const bool has_root = std::ranges::find(cluster_.hosts[h].ranks, 0) != cluster_.hosts[h].ranks.end();
      if (by_shape.try_emplace(cluster_.hosts[h].shape, h).second || has_root) hosts.push_back(h);
    }
    return hosts;
  }

  std::string hostPrefix(std::size_t host) const {
    return cluster_.hosts.size() > 1 ? cluster_.hosts[host].name + ": " : "";
  }

  Duration ofLinks(Collective collective, std::size_t host) const {
    const TopologyPaths& paths = paths_[cluster_.hosts[host].shape];
    std::vector<double> loads(paths.edges().size());
    double unseen = 0;
    for (const Flow& flow : flowsOf(collective, cluster_, result_, paths, host)) {
      if (flow.from == kNoNode) unseen += flow.amount;
      if (flow.from == kNoNode || flow.to == kNoNode) continue;
      for (const LinkUse& use : legBetween(paths, result_.rules, flow.from, flow.to).links) {
        loads[at(use.link)] += flow.amount * use.tenths / 10;
      }
    }
    const double guess = netGBytes({});
    Duration longest{unseen / guess, fmt::format("{}a NIC that was not seen, taken for {:.4g} GB/s",
                                                 hostPrefix(host), guess)};
    for (std::size_t e = 0; e < loads.size(); ++e) {
      const Edge& edge = paths.edges()[e];
      const double seconds = loads[e] / edge.gbytes_per_s;
      if (seconds <= longest.seconds * (1 + 1e-9)) continue;
      longest = {seconds,
                 fmt::format("{}{}, {:.4g} GB/s, carries {} per byte of the message", hostPrefix(host),
                             describe(paths.topology(), edge), edge.gbytes_per_s, bytesWords(loads[e]))};
    }
    return longest;
  }

  bool isOnHostMemory() const {
    return std::ranges::all_of(cluster_.shapes, [](const Cluster::HostShape& shape) {
      return std::ranges::all_of(shape.seats, [&shape](int seat) {
        return shape.topology->nodes[at(seat)].kind == TopologyKind::numa_node;
      });
    });
  }

  /// Only of what ranks of one host do with each other's memory.
  Duration ofMemory(Collective collective) const {
    if (!isOnHostMemory() || cluster_.hosts.size() > 1) return {};
    if (costs_.combine_gbytes_per_s <= 0 || (!costs_.lends && costs_.copy_gbytes_per_s <= 0)) return {};
    const Touched touched = touchedBy(collective, nranks_);
    const double copied = costs_.lends ? 0 : touched.copied;
    const double copying = copied > 0 ? copied / costs_.copy_gbytes_per_s : 0;
    std::string limit = fmt::format("each rank's cores, {:.4g} GB/s in combine", costs_.combine_gbytes_per_s);
    if (copied > 0) limit += fmt::format(" and {:.4g} GB/s in copies", costs_.copy_gbytes_per_s);
    limit += fmt::format(": touch {} per byte of the message", bytesWords(touched.combined + copied));
    return {touched.combined / costs_.combine_gbytes_per_s + copying, limit};
  }

  const Cluster& cluster_;
  const SearchResult& result_;
  const HostMemoryCosts& costs_;
  std::vector<TopologyPaths> paths_;  ///< by shape
  int nranks_ = 0;
};

}  // namespace

std::vector<PredictedBandwidth> predictBandwidths(const Cluster& cluster, const SearchResult& result,
                                                  const HostMemoryCosts& costs) {
  const Predictor predictor(cluster, result, costs);
  std::vector<PredictedBandwidth> predicted;
  predicted.reserve(kCollectiveCount);
  for (int c = 0; c < kCollectiveCount; ++c) {
    predicted.push_back(predictor.predict(static_cast<Collective>(c)));
  }
  return predicted;
}

}  // namespace tutti
