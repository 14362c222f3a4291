#include "runtime/topology/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/topology/legs.h"
#include "runtime/topology/rails.h"

namespace tutti {
namespace {

struct Limit {
  int edge = -1;
  double uses = 0;
  double load = 0;  ///< of its rate
};

class Reasons {
 public:
  Reasons(const Cluster& cluster, const std::vector<TopologyPaths>& paths, const SearchResult& result)
      : cluster_(cluster), paths_(paths), result_(result) {}

  std::vector<std::string> all() {
    for (std::size_t s = 0; s < cluster_.shapes.size(); ++s) {
      describeShape(s);
      describeExcess(s);
      describeLosses(s);
    }
    if (cluster_.hosts.size() > 1) describeRails();
    return std::move(lines_);
  }

 private:
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool hasPorts(std::size_t shape) const {
    return cluster_.hosts.size() > 1 && !portsOf(paths_[shape].topology()).empty();
  }

  /// "node7" or "node7 and 15 more like it".
  std::string whoIs(std::size_t shape) const {
    const auto first = std::ranges::find(cluster_.hosts, shape, &Cluster::Host::shape);
    const auto count = std::ranges::count(cluster_.hosts, shape, &Cluster::Host::shape);
    const std::string name = first == cluster_.hosts.end() ? "no host" : first->name;
    return count > 1 ? fmt::format("{} and {} more like it", name, count - 1) : name;
  }

  /// Of channels of one speed inside hosts, and of one to others.
  std::optional<Limit> limitOf(std::size_t shape, double inside, double to_ports) const {
    const ChannelGraph& ring = result_.rings[shape];
    const RouteForm form = formOf(ChannelPattern::ring, hasPorts(shape));
    const ChannelUses uses =
        usesOf(paths_[shape], result_.rules, cluster_.shapes[shape].seats, form, ring.channels);
    Limit most;
    for (std::size_t e = 0; e < paths_[shape].edges().size(); ++e) {
      const double load =
          (uses.inside[e] * inside + uses.to_ports[e] * to_ports) / paths_[shape].edges()[e].gbytes_per_s;
      if (load > most.load * (1 + 1e-9)) {
        most = {static_cast<int>(e), uses.inside[e] + uses.to_ports[e], load};
      }
    }
    if (most.edge < 0) return std::nullopt;
    return most;
  }

  std::string linkOf(std::size_t shape, const Limit& limit) const {
    const Edge& edge = paths_[shape].edges()[static_cast<std::size_t>(limit.edge)];
    const std::string uses = fmt::format("{:.3g}", limit.uses);
    return fmt::format("the {}, {:.4g} GB/s, used {}", describe(paths_[shape].topology(), edge),
                       edge.gbytes_per_s, uses == "1" ? "once" : uses + " times");
  }

  void describeShape(std::size_t shape) {
    const ChannelGraph& ring = result_.rings[shape];
    const double speed = std::min(ring.intra_gbytes_per_s, ring.inter_gbytes_per_s);
    std::string classes(name(ring.intra_class));
    if (hasPorts(shape)) classes += fmt::format(" inside, {} to NICs", name(ring.inter_class));
    // What is slower sets the pace of both: a link that the faster would fill limits nothing.
    const std::optional<Limit> limit = limitOf(shape, speed, speed);
    const bool is_guess = cluster_.hosts.size() > 1 && !hasPorts(shape);
    if (!limit && !is_guess) {
      say("{}: all ranks are in one place, no link limits them", whoIs(shape));
      return;
    }
    const bool link_limits = limit && (!is_guess || ring.inter_gbytes_per_s >= ring.intra_gbytes_per_s);
    say("{}: {} channel{} of {:.4g} GB/s, {}; limited by {}", whoIs(shape), ring.channels.size(),
        ring.channels.size() == 1 ? "" : "s", speed, classes,
        link_limits ? linkOf(shape, *limit) : "a NIC that was not seen");
  }

  /// Speeds of a graph file; those that were found fit.
  void describeExcess(std::size_t shape) {
    const ChannelGraph& ring = result_.rings[shape];
    const std::optional<Limit> limit = limitOf(shape, ring.intra_gbytes_per_s, ring.inter_gbytes_per_s);
    if (!limit || limit->load <= 1 + 1e-6) return;
    const double speed = std::min(ring.intra_gbytes_per_s, ring.inter_gbytes_per_s);
    say("{}: the graph file says {:.4g} GB/s per channel; the links carry {:.4g}: {}", whoIs(shape), speed,
        speed / limit->load, linkOf(shape, *limit));
  }

  void describeLosses(std::size_t shape) {
    const ChannelGraph& ring = result_.rings[shape];
    if (ring.was_cut_short) {
      say("{}: the search used up its steps; there may be better rings", whoIs(shape));
    }
    const std::vector<int>& seats = cluster_.shapes[shape].seats;
    if (const std::set<int> places(seats.begin(), seats.end()); places.size() > kMostSearchedPlaces) {
      say("{}: not searched: ranks are in {} places, more than {}; they keep their order", whoIs(shape),
          places.size(), kMostSearchedPlaces);
    }
    const std::size_t ports = portsOf(paths_[shape].topology()).size();
    if (cluster_.hosts.size() > 1 && ports > kMostSearchedPorts) {
      say("{}: not searched: it has {} ports, more than {}; ranks keep their order and use the first port",
          whoIs(shape), ports, kMostSearchedPorts);
    }
    if (passesThroughHostMemory(shape)) {
      say("{}: between NICs and GPUs data passes through host memory: they are farther from each other than "
          "{}",
          whoIs(shape), name(result_.rules.rdma_level));
    }
    if (cluster_.hosts.size() > 1 && !hasPorts(shape)) {
      say("{}: no NIC was seen; what it carries between hosts is a guess", whoIs(shape));
    }
  }

  bool passesThroughHostMemory(std::size_t shape) const {
    const std::vector<int>& seats = cluster_.shapes[shape].seats;
    const auto isFar = [&](int port, int seat) {
      const int node = seats[static_cast<std::size_t>(seat)];
      const TopologyPaths& paths = paths_[shape];
      return port != kNoNode &&
             paths.topology().nodes[static_cast<std::size_t>(node)].kind == TopologyKind::gpu &&
             paths.between(port, node).path_class > result_.rules.rdma_level;
    };
    return std::ranges::any_of(result_.rings[shape].channels, [&](const HostChannel& channel) {
      return isFar(channel.net_in, channel.order.front()) || isFar(channel.net_out, channel.order.back());
    });
  }

  void describeRails() {
    const std::vector<std::vector<int>> rails = railsOf(cluster_);
    const bool crosses = std::ranges::any_of(result_.rings, &ChannelGraph::crosses_nics);
    if (crosses) say("channels leave hosts by another NIC than they came in by: more fits on the links so");
    const auto first_rail = [&](std::size_t shape, std::size_t c) {
      const int port = result_.rings[shape].channels[c].net_in;
      return port == kNoNode ? kNoNode : rails[shape][static_cast<std::size_t>(port)];
    };
    for (std::size_t c = 0; c < result_.channels.size(); ++c) {
      for (std::size_t s = 1; s < cluster_.shapes.size(); ++s) {
        if (first_rail(s, c) == first_rail(0, c)) continue;
        say("channel {} goes from rail {} of {} to rail {} of {}", c, first_rail(0, c), whoIs(0),
            first_rail(s, c), whoIs(s));
      }
    }
  }

  const Cluster& cluster_;
  const std::vector<TopologyPaths>& paths_;
  const SearchResult& result_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> reasonsOf(const Cluster& cluster, const std::vector<TopologyPaths>& paths,
                                   const SearchResult& result) {
  return Reasons(cluster, paths, result).all();
}

}  // namespace tutti
