#include "tools/topo/channels_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/topology/bandwidths.h"
#include "runtime/topology/notation.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

/// What a line of ranks is cut to; JSON has all.
constexpr std::size_t kMostRanks = 64;

std::string seatWords(const Machine& machine, std::size_t shape, int seat) {
  const Topology& topology = machine.topologyOf(shape);
  const std::vector<int>& seats = machine.cluster.shapes[shape].seats;
  const int node = seats[static_cast<std::size_t>(seat)];
  if (std::ranges::count(seats, node) == 1) return shortLabel(topology, node);
  const char* const kind = machine.cluster.hosts.size() > 1 ? "local rank" : "rank";
  return fmt::format("{} {} ({})", kind, seat, shortLabel(topology, node));
}

std::string orderWords(const Machine& machine, std::size_t shape, const HostChannel& channel,
                       bool is_closed) {
  const Topology& topology = machine.topologyOf(shape);
  std::string words = channel.net_in == kNoNode ? "" : shortLabel(topology, channel.net_in);
  for (const int seat : channel.order)
    words += (words.empty() ? "" : " > ") + seatWords(machine, shape, seat);
  if (channel.net_out != kNoNode) return words + " > " + shortLabel(topology, channel.net_out);
  if (is_closed && channel.order.size() > 1)
    words += " > " + seatWords(machine, shape, channel.order.front());
  return words;
}

/// What stays in one place passes no link.
bool isLimited(const ChannelGraph& graph) { return graph.intra_gbytes_per_s < kLocalGBytes; }

/// Speeds and classes of one shape, then its channels.
std::string graphText(const Machine& machine, std::size_t shape, const ChannelGraph& graph) {
  const bool has_network = machine.cluster.hosts.size() > 1;
  const bool is_ring = graph.pattern == ChannelPattern::ring;
  std::string text =
      fmt::format("{}: {}", namesOf(machine.hostsOf(shape)), countWords(graph.channels.size(), "channel"));
  text += isLimited(graph) ? fmt::format(", each {} inside the host (at worst {})",
                                         gbytesWords(graph.intra_gbytes_per_s), name(graph.intra_class))
                           : ", no link inside the host limits";
  if (has_network)
    text += fmt::format(", {} to other hosts (NICs at worst {})", gbytesWords(graph.inter_gbytes_per_s),
                        name(graph.inter_class));
  if (graph.crosses_nics) text += ", NICs are crossed";
  if (graph.was_cut_short) text += "; the search was cut short";
  text += '\n';
  for (const EqualChannels& equal : equalChannels(graph))
    text += fmt::format("  {}: {}\n", channelWords(equal.numbers),
                        orderWords(machine, shape, equal.channel, is_ring && !has_network));
  return text;
}

std::string graphsText(const Machine& machine, const std::vector<ChannelGraph>& graphs) {
  std::string text;
  for (std::size_t shape = 0; shape < graphs.size(); ++shape)
    text += graphText(machine, shape, graphs[shape]);
  return text;
}

std::string reasonsText(const Machine& machine) {
  std::string text = machine.search.reasons.empty() ? "" : "\nWhy:\n";
  for (const std::string& reason : machine.search.reasons) text += "  " + reason + '\n';
  return text;
}

std::string rankList(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostRanks); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : " ", ranks[i]);
  if (ranks.size() > kMostRanks)
    text += fmt::format(" ... and {} more (--format json has all)", ranks.size() - kMostRanks);
  return text;
}

/// Chains on one line; who has two below him starts lines of their own.
class TreeLines {
 public:
  explicit TreeLines(const std::vector<TreePlace>& places) : places_(places) {}

  std::string from(int rank) {
    std::string text = "    ";
    chain(rank, "    ", text);
    return text;
  }

 private:
  const std::vector<int>& below(int rank) const { return places_[static_cast<std::size_t>(rank)].down; }

  void chain(int rank, const std::string& branches, std::string& text) {
    text += std::to_string(rank);
    while (below(rank).size() == 1) {
      rank = below(rank).front();
      text += fmt::format(" > {}", rank);
    }
    text += '\n';
    const std::vector<int>& children = below(rank);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const bool is_last = i + 1 == children.size();
      text += branches + (is_last ? "└─ " : "├─ ");
      chain(children[i], branches + (is_last ? "   " : "│  "), text);
    }
  }

  const std::vector<TreePlace>& places_;
};

std::string treeText(const std::vector<TreePlace>& places) {
  const auto root = std::ranges::find_if(places, [](const TreePlace& place) { return place.up < 0; });
  return root == places.end() ? "" : TreeLines(places).from(static_cast<int>(root - places.begin()));
}

/// Channels by what `part` of them shows, those that are equal together.
template <typename Part>
std::string channelsText(const Machine& machine, const Part& part) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t i = 0; i < machine.search.channels.size(); ++i) {
    std::string text = part(machine.search.channels[i]);
    auto group = std::ranges::find(groups, text, [](const auto& known) { return known.first; });
    if (group == groups.end()) group = groups.insert(group, {std::move(text), {}});
    group->second.push_back(static_cast<int>(i));
  }
  std::string text;
  for (const auto& [words, numbers] : groups)
    text += fmt::format("  {}: {}{}", channelWords(numbers), words, words.ends_with('\n') ? "" : "\n");
  return text;
}

std::string headline(const Machine& machine, const char* what) {
  return fmt::format("{}: {}, {}\n", what, countWords(machine.cluster.hosts.size(), "host"),
                     countWords(machine.rankCount(), "rank"));
}

}  // namespace

std::vector<EqualChannels> equalChannels(const ChannelGraph& graph) {
  std::vector<EqualChannels> result;
  for (std::size_t i = 0; i < graph.channels.size(); ++i) {
    auto equal = std::ranges::find(result, graph.channels[i], &EqualChannels::channel);
    if (equal == result.end()) equal = result.insert(equal, {.channel = graph.channels[i], .numbers = {}});
    equal->numbers.push_back(static_cast<int>(i));
  }
  return result;
}

std::string channelWords(const std::vector<int>& numbers) {
  return fmt::format("channel{} {}", numbers.size() == 1 ? "" : "s", listOfCpus(numbers));
}

std::string ringsText(const Machine& machine) {
  std::string text = headline(machine, "Rings") + graphsText(machine, machine.search.rings);
  if (machine.rankCount() > 1) {
    text += "\nRanks, in the order that data travels:\n";
    text += channelsText(machine, [](const ClusterChannel& channel) { return rankList(channel.ring); });
  }
  return text + reasonsText(machine);
}

std::string treesText(const Machine& machine) {
  std::string text = headline(machine, "Trees") + graphsText(machine, machine.search.trees);
  if (machine.rankCount() <= 1) return text;
  text += "\nDouble binary trees of ranks, roots first:\n";
  return text + channelsText(machine, [](const ClusterChannel& channel) {
           const std::string one = treeText(channel.trees[0]);
           const std::string other = treeText(channel.trees[1]);
           if (one == other) return fmt::format("both halves\n{}", one);
           return fmt::format("one half\n{}    the other half\n{}", one, other);
         });
}

/// Why the table's figures are not those of the rings.
std::string directText(const Machine& machine) {
  const bool is_direct = std::ranges::find(machine.bandwidths, "direct", &PredictedBandwidth::algorithm) !=
                         machine.bandwidths.end();
  if (!is_direct || machine.cluster.hosts.size() > 1 || machine.rankCount() < 2) return "";
  const ChannelGraph& rings = machine.search.rings.front();
  const std::size_t count = rings.channels.size();
  std::string which = count == 1 ? "the ring" : fmt::format("the {} rings", count);
  if (isLimited(rings)) which += " of " + gbytesWords(rings.intra_gbytes_per_s);
  return fmt::format(
      "direct: each rank sends to every other at once; {} {} not used inside a host, unless "
      "NCCL_ALGO=Ring asks for it.\n",
      which, count == 1 ? "is" : "are");
}

std::string bandwidthText(const Machine& machine) {
  std::string text = headline(machine, "Predicted bandwidth of large messages") +
                     "                 bus bw  alg bw\n"
                     "  collective     (GB/s)  (GB/s)  algorithm     limit\n";
  for (const PredictedBandwidth& it : machine.bandwidths) {
    const auto known = [](double speed) { return speed > 0 ? shortGBytes(speed) : "-"; };
    text += fmt::format("  {:<13}  {:>6}  {:>6}  {:<12}  {}\n", name(it.collective),
                        known(it.bus_gbytes_per_s), known(it.algorithm_gbytes_per_s), it.algorithm, it.limit);
  }
  return text + directText(machine) + "Bus bandwidth as the *_perf programs define it; 1 GB = 10^9 bytes.\n";
}

}  // namespace tutti::topo
