#include "runtime/topology/traffic.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "runtime/topology/legs.h"

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

int rankCount(const Cluster& cluster) {
  return std::accumulate(
      cluster.hosts.begin(), cluster.hosts.end(), 0,
      [](int sum, const Cluster::Host& host) { return sum + static_cast<int>(host.ranks.size()); });
}

/// Every host has as many ranks, more than one, numbered host by host.
bool isNumberedByHosts(const Cluster& cluster) {
  const std::size_t each = cluster.hosts.front().ranks.size();
  for (const Cluster::Host& host : cluster.hosts) {
    const auto [least, most] = std::ranges::minmax(host.ranks);
    if (host.ranks.size() != each || at(most - least) != each - 1 || at(least) % each != 0) return false;
  }
  return each > 1;
}

/// What `from` sends to `to` in the direct programs: parts of n ranks.
double directAmount(Collective collective, int from, int to, double n) {
  const bool from_root = from == 0;
  const bool to_root = to == 0;
  switch (collective) {
    case Collective::all_reduce:
      return 2 / n;  // a part of the input there, the sum of another back
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return 1 / n;
    case Collective::broadcast:
      return from_root ? 1 : 0;
    case Collective::reduce:
      return 1 / n + (to_root ? 1 / n : 0);  // parts to everybody, their sums to the root
    case Collective::gather:
      return to_root ? 1 / n : 0;
    case Collective::scatter:
      return from_root ? 1 / n : 0;
  }
  return 0;
}

/// What a link of the ring passes on.
double ringAmount(Collective collective, double n) {
  if (collective == Collective::broadcast || collective == Collective::reduce) return 1;
  return (collective == Collective::all_reduce ? 2 : 1) * (n - 1) / n;
}

class HostFlows {
 public:
  HostFlows(const Cluster& cluster, const SearchResult& result, const TopologyPaths& paths, std::size_t host)
      : cluster_(cluster),
        result_(result),
        paths_(paths),
        host_(cluster.hosts[host]),
        seats_(cluster.shapes[host_.shape].seats),
        nranks_(rankCount(cluster)) {}

  std::vector<Flow> direct(Collective collective) {
    for (std::size_t seat = 0; seat < seats_.size(); ++seat) {
      const int rank = host_.ranks[seat];
      double out = 0;
      double in = 0;
      for (int peer = 0; peer < nranks_; ++peer) {
        if (peer == rank) continue;
        const double there = directAmount(collective, rank, peer, nranks_);
        if (const std::optional<std::size_t> peer_seat = seatOf(peer)) {
          add(seats_[seat], seats_[*peer_seat], there);
        } else {
          out += there;
          in += directAmount(collective, peer, rank, nranks_);
        }
      }
      addOutside(seat, out, in);
    }
    return std::move(flows_);
  }

  /// Reduce-scatter and all-gather inside; between hosts each rank's part goes round.
  std::vector<Flow> hierarchical() {
    const auto local = static_cast<double>(seats_.size());
    const auto hosts = static_cast<double>(cluster_.hosts.size());
    const double between = 2 * (hosts - 1) / hosts / local;
    for (std::size_t from = 0; from < seats_.size(); ++from) {
      for (std::size_t to = 0; to < seats_.size(); ++to) {
        if (from != to) add(seats_[from], seats_[to], 2 / local);
      }
      addOutside(from, between, between);
    }
    return std::move(flows_);
  }

  std::vector<Flow> ring(Collective collective) {
    const double amount = ringAmount(collective, nranks_) / static_cast<double>(result_.channels.size());
    for (std::size_t c = 0; c < result_.channels.size(); ++c) addChannel(c, amount);
    return std::move(flows_);
  }

 private:
  std::optional<std::size_t> seatOf(int rank) const {
    const auto it = std::ranges::find(host_.ranks, rank);
    if (it == host_.ranks.end()) return std::nullopt;
    return static_cast<std::size_t>(it - host_.ranks.begin());
  }
  void add(int from, int to, double amount) {
    if (amount > 0) flows_.push_back({from, to, amount});
  }

  /// Ranks use the port that is nearest to them; where several are, they take turns
  /// (transports/verbs/port_order.h).
  int portOf(std::size_t seat) const {
    std::vector<int> nearest;
    PathClass best = PathClass::net;
    for (const int port : portsOf(paths_.topology())) {
      const PathClass path_class = paths_.between(seats_[seat], port).path_class;
      if (path_class < best) nearest.clear();
      best = std::min(best, path_class);
      if (path_class == best) nearest.push_back(port);
    }
    const auto local_rank = static_cast<std::size_t>(
        std::ranges::count_if(host_.ranks, [&](int rank) { return rank < host_.ranks[seat]; }));
    return nearest.empty() ? kNoNode : nearest[local_rank % nearest.size()];
  }
  void addOutside(std::size_t seat, double out, double in) {
    if (out == 0 && in == 0) return;
    const int port = portOf(seat);
    add(seats_[seat], port, out);
    add(port, seats_[seat], in);
  }

  void addChannel(std::size_t c, double amount) {
    const std::vector<int>& ring = result_.channels[c].ring;
    const HostChannel& channel = result_.rings[host_.shape].channels[c];
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::optional<std::size_t> from = seatOf(ring[i]);
      const std::optional<std::size_t> to = seatOf(ring[(i + 1) % ring.size()]);
      if (from && to && *from != *to) add(seats_[*from], seats_[*to], amount);
      if (from && !to) add(seats_[*from], portAt(channel, static_cast<int>(*from), true), amount);
      if (!from && to) add(portAt(channel, static_cast<int>(*to), false), seats_[*to], amount);
    }
  }

  const Cluster& cluster_;
  const SearchResult& result_;
  const TopologyPaths& paths_;
  const Cluster::Host& host_;
  const std::vector<int>& seats_;
  int nranks_;
  std::vector<Flow> flows_;
};

}  // namespace

std::string_view algorithmFor(Collective collective, const Cluster& cluster) {
  const int nranks = rankCount(cluster);
  const bool is_personalized = collective == Collective::all_to_all || collective == Collective::gather ||
                               collective == Collective::scatter;
  if (nranks == 1) return "single";
  if (is_personalized) return "direct";
  if (nranks > kMaxMeshRanks) return "ring";
  if (cluster.hosts.size() == 1 || nranks == 2) return "direct";
  if (collective == Collective::all_reduce && isNumberedByHosts(cluster)) return "hierarchical";
  return "ring";
}

std::vector<Flow> flowsOf(Collective collective, const Cluster& cluster, const SearchResult& result,
                          const TopologyPaths& paths, std::size_t host) {
  HostFlows flows(cluster, result, paths, host);
  const std::string_view algorithm = algorithmFor(collective, cluster);
  if (algorithm == "direct") return flows.direct(collective);
  if (algorithm == "hierarchical") return flows.hierarchical();
  if (algorithm == "ring") return flows.ring(collective);
  return {};
}

}  // namespace tutti
