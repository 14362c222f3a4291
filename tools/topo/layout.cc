#include "tools/topo/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "runtime/topology/bandwidths.h"
#include "tools/topo/details.h"
#include "tools/topo/tree.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr double kPad = 10;        // inside frames
constexpr double kGap = 12;        // between neighbours
constexpr double kLeafWidth = 86;  // holds a bus id
constexpr double kMostLeafWidth = 130;
constexpr double kLetter = 6.4;     // widest average of a letter in a box
constexpr double kHeadHeight = 34;  // two lines
constexpr double kPortHeight = 32;
constexpr double kGpuHeight = kHeadHeight + kPortHeight;
constexpr double kBridgeHeight = 22;
constexpr double kCpuHeight = 38;
constexpr double kLeastCpuWidth = 200;
constexpr double kLevelGap = 34;  // room for a wire and its label
constexpr double kBarHeight = 18;
constexpr double kSwitchHeight = 26;
constexpr double kNvlinkGap = 46;
constexpr double kSocketPad = 7;  // around the NUMA nodes of one socket
constexpr double kSocketTitle = 20;
constexpr double kMostRow = 1500;  // sockets without GPUs go on in another row

class HostPlan {
 public:
  HostPlan(const TopologyPaths& paths, double title_height)
      : paths_(paths), topology_(paths.topology()), top_(title_height) {}

  HostLayout made() && {
    placeSockets();
    placeNvlinks();
    layout_.width += kPad;
    layout_.height = bottom_ + kPad;
    for (int node = 0; std::cmp_less(node, topology_.nodes.size()); ++node) {
      if (layout_.find(node) == nullptr) layout_.left_out.push_back(node);
    }
    return std::move(layout_);
  }

 private:
  const TopologyNode& at(int node) const { return nodeAt(topology_, node); }
  bool isNic(const Hanging& hanging) const { return at(hanging.node).kind == TopologyKind::nic; }
  bool isNode(const Hanging& hanging) const { return at(hanging.node).kind != TopologyKind::pci_bridge; }

  double leafWidth(const Hanging& leaf) const {
    std::size_t letters = at(leaf.node).bus_id.size();
    for (const Hanging& port : leaf.children)
      letters = std::max(letters, shortLabel(topology_, port.node).size());
    return std::clamp(static_cast<double>(letters) * kLetter + kPad, kLeafWidth, kMostLeafWidth);
  }

  double widthOf(const Hanging& hanging) const {
    if (isNode(hanging)) return leafWidth(hanging);
    return std::max(kLeafWidth, widthOf(hanging.children));
  }

  double widthOf(const std::vector<Hanging>& all) const {
    double width = 0;
    for (const Hanging& hanging : all) width += widthOf(hanging) + (width > 0 ? kGap : 0);
    return width;
  }

  std::size_t bridgeLevels(const std::vector<Hanging>& all) const {
    std::size_t most = 0;
    for (const Hanging& hanging : all) {
      if (!isNode(hanging)) most = std::max(most, 1 + bridgeLevels(hanging.children));
    }
    return most;
  }

  void placeSockets();
  bool areOfOneSocket(int a, int b) const;
  void frameSockets(const std::vector<int>& roots, std::size_t first_frame);
  void placeRow(const std::vector<int>& roots, double top);
  void placeRoot(int root, const Box& frame, const std::vector<Hanging>& children);
  void placeAll(const std::vector<Hanging>& all, double left, double top, double parent_bottom);
  void placeLeaf(const Hanging& leaf, const Box& box);
  void placeNvlinks();
  void placeSwitches();
  void placeBows();
  void wireTo(const Hanging& hanging, const Box& box, double parent_bottom);
  void wireC2c(int gpu, const Box& box);

  const TopologyPaths& paths_;
  const Topology& topology_;
  HostLayout layout_;
  bool has_sockets_ = false;  // that hold several NUMA nodes
  double top_ = 0;
  double bottom_ = 0;    // of what was placed
  double leaf_top_ = 0;  // of the row of GPUs and NICs
};

void HostPlan::placeSockets() {
  const std::vector<int> roots = rootsOf(topology_);
  const bool has_gpus = !topology_.all(TopologyKind::gpu).empty();
  std::vector<std::vector<int>> rows(1);
  double width = 0;
  for (const int root : roots) {
    const double wanted =
        std::max(kLeastCpuWidth, widthOf(hangingAt(paths_, root, Bridges::folded))) + 2 * kPad + kGap;
    if (!has_gpus && width > 0 && width + wanted > kMostRow) {
      rows.emplace_back();
      width = 0;
    }
    width += wanted;
    rows.back().push_back(root);
  }
  for (std::size_t i = 0; i + 1 < roots.size(); ++i)
    has_sockets_ = has_sockets_ || areOfOneSocket(roots[i], roots[i + 1]);
  double top = top_;
  for (const int root : roots)
    layout_.between_sockets_gbytes = std::max(layout_.between_sockets_gbytes, socketGBytesOf(paths_, root));
  const bool has_bar = layout_.between_sockets_gbytes > 0;
  if (has_bar) {
    layout_.between_sockets = {.x = kPad, .y = top, .width = 0, .height = kBarHeight};
    top += kBarHeight + kLevelGap;
  }
  for (const std::vector<int>& row : rows) {
    if (has_sockets_) top += kSocketTitle;
    placeRow(row, top);
    top = bottom_ + kGap;
  }
  if (!has_bar) return;
  layout_.between_sockets.width = layout_.width - kPad;
  if (rows.size() > 1) return;
  for (const int root : roots) {
    const Box& cpu = *layout_.find(root);
    const double speed = socketGBytesOf(paths_, root);
    layout_.wires.push_back({.medium = Medium::socket,
                             .x = cpu.middle(),
                             .top = layout_.between_sockets.bottom(),
                             .bottom = cpu.y,
                             .gbytes_per_s = speed,
                             .title = fmt::format("{} to other NUMA nodes: {}", shortLabel(topology_, root),
                                                  gbytesWords(speed))});
  }
}

void HostPlan::placeRow(const std::vector<int>& roots, double top) {
  std::size_t levels = 0;
  std::vector<std::vector<Hanging>> hanging;
  for (const int root : roots) {
    hanging.push_back(hangingAt(paths_, root, Bridges::folded));
    levels = std::max(levels, bridgeLevels(hanging.back()));
  }
  leaf_top_ = top + kPad + kCpuHeight + static_cast<double>(levels) * (kBridgeHeight + kLevelGap) + kLevelGap;
  const std::size_t first_frame = layout_.frames.size();
  bottom_ = top + kPad + kCpuHeight;
  double x = has_sockets_ ? kPad + kSocketPad : kPad;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const double width = std::max(kLeastCpuWidth, widthOf(hanging[i])) + 2 * kPad;
    if (i > 0) x += kGap + (has_sockets_ && !areOfOneSocket(roots[i - 1], roots[i]) ? 2 * kSocketPad : 0);
    placeRoot(roots[i], {.x = x, .y = top, .width = width, .height = 0}, hanging[i]);
    x += width;
  }
  bottom_ += kPad;
  for (std::size_t i = first_frame; i < layout_.frames.size(); ++i)
    layout_.frames[i].box.height = bottom_ - layout_.frames[i].box.y;
  if (has_sockets_) {
    frameSockets(roots, first_frame);
    x += kSocketPad;
    bottom_ += kSocketPad;
  }
  layout_.width = std::max(layout_.width, x);
}

bool HostPlan::areOfOneSocket(int a, int b) const {
  return at(a).cpu.package >= 0 && at(a).cpu.package == at(b).cpu.package;
}

/// Frames around those of one row's NUMA nodes, neighbours of one socket together.
void HostPlan::frameSockets(const std::vector<int>& roots, std::size_t first_frame) {
  std::vector<PlacedFrame> sockets;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const Box& inner = layout_.frames[first_frame + i].box;
    if (i == 0 || !areOfOneSocket(roots[i - 1], roots[i])) {
      const int package = at(roots[i]).cpu.package;
      sockets.push_back({.label = package >= 0 ? fmt::format("socket {}", package) : "",
                         .box = {.x = inner.x - kSocketPad,
                                 .y = inner.y - kSocketTitle,
                                 .width = 0,
                                 .height = inner.height + kSocketTitle + kSocketPad}});
    }
    sockets.back().box.width = inner.right() + kSocketPad - sockets.back().box.x;
  }
  const auto at_first = layout_.frames.begin() + static_cast<std::ptrdiff_t>(first_frame);
  layout_.frames.insert(at_first, sockets.begin(), sockets.end());
}

void HostPlan::placeRoot(int root, const Box& frame, const std::vector<Hanging>& children) {
  layout_.frames.push_back({.label = "", .box = frame});
  const Box cpu{
      .x = frame.x + kPad, .y = frame.y + kPad, .width = frame.width - 2 * kPad, .height = kCpuHeight};
  layout_.nodes.push_back({.node = root, .box = cpu});
  const double left = frame.middle() - widthOf(children) / 2;
  placeAll(children, left, cpu.bottom() + kLevelGap, cpu.bottom());
}

void HostPlan::placeAll(const std::vector<Hanging>& all, double left, double top, double parent_bottom) {
  for (const Hanging& hanging : all) {
    const double width = widthOf(hanging);
    if (isNode(hanging)) {
      const Box box{
          .x = left, .y = leaf_top_, .width = width, .height = isNic(hanging) ? kHeadHeight : kGpuHeight};
      wireTo(hanging, box, parent_bottom);
      placeLeaf(hanging, box);
    } else {
      const Box box{.x = left, .y = top, .width = width, .height = kBridgeHeight};
      wireTo(hanging, box, parent_bottom);
      layout_.nodes.push_back({.node = hanging.node, .box = box});
      placeAll(hanging.children, left + (width - widthOf(hanging.children)) / 2, box.bottom() + kLevelGap,
               box.bottom());
    }
    left += width + kGap;
  }
}

void HostPlan::placeLeaf(const Hanging& leaf, const Box& box) {
  layout_.nodes.push_back({.node = leaf.node, .box = box});
  bottom_ = std::max(bottom_, box.bottom());
  if (!isNic(leaf)) {
    wireC2c(leaf.node, box);
    return;
  }
  Box port{.x = box.x, .y = box.bottom(), .width = box.width, .height = kPortHeight};
  for (const Hanging& hanging : leaf.children) {
    layout_.nodes.push_back({.node = hanging.node, .box = port});
    port.y += kPortHeight;
  }
  bottom_ = std::max(bottom_, port.y);
}

void HostPlan::wireTo(const Hanging& hanging, const Box& box, double parent_bottom) {
  const TopologyNode& node = at(hanging.node);
  const bool is_pci = !node.bus_id.empty();
  std::string title = topology_.label(hanging.node);
  if (is_pci) title += ": " + gbytesWords(hanging.gbytes_per_s);
  if (const std::string trained = trainedWords(node.link); !trained.empty()) title += " (" + trained + ")";
  for (const int bridge : hanging.passed) title += ", through " + at(bridge).bus_id;
  layout_.wires.push_back({.medium = Medium::pci,
                           .x = box.middle(),
                           .top = parent_bottom,
                           .bottom = box.y,
                           .gbytes_per_s = is_pci ? hanging.gbytes_per_s : 0,
                           .title = title,
                           .has_label = is_pci});
}

void HostPlan::wireC2c(int gpu, const Box& box) {
  for (const NvlinkSum& sum : nvlinksOf(paths_, gpu)) {
    if (at(sum.to).kind != TopologyKind::numa_node) continue;
    const Box* const cpu = layout_.find(sum.to);
    if (cpu == nullptr) continue;
    layout_.wires.push_back(
        {.medium = Medium::c2c,
         .x = box.x + box.width / 5,
         .top = cpu->bottom(),
         .bottom = box.y,
         .gbytes_per_s = sum.gbytes_per_s,
         .title = fmt::format("{} to {} by C2C: {}", shortLabel(topology_, gpu),
                              shortLabel(topology_, sum.to), gbytesWords(sum.gbytes_per_s)),
         .has_label = false});
  }
}

void HostPlan::placeNvlinks() {
  placeBows();
  placeSwitches();
}

/// All switches side by side in one row; a GPU's links to any of them are one wire.
void HostPlan::placeSwitches() {
  const std::vector<int> switches = topology_.all(TopologyKind::nvswitch);
  if (switches.empty()) return;
  double left = layout_.width;
  double right = 0;
  const double top = bottom_ + kNvlinkGap;
  for (const int gpu : topology_.all(TopologyKind::gpu)) {
    const Box* const box = layout_.find(gpu);
    if (box == nullptr) continue;
    double speed = 0;
    int count = 0;
    for (const NvlinkSum& sum : nvlinksOf(paths_, gpu)) {
      if (at(sum.to).kind != TopologyKind::nvswitch) continue;
      speed += sum.gbytes_per_s;
      count += sum.count;
    }
    if (count == 0) continue;
    left = std::min(left, box->x);
    right = std::max(right, box->right());
    layout_.wires.push_back(
        {.medium = Medium::nvlink,
         .x = box->middle(),
         .top = box->bottom(),
         .bottom = top,
         .gbytes_per_s = speed,
         .title = fmt::format("{}: {} to {}, {}", shortLabel(topology_, gpu),
                              countWords(static_cast<std::size_t>(count), "NVLink"),
                              countWords(switches.size(), "NVSwitch"), gbytesWords(speed))});
  }
  if (right <= left) {  // switches that no GPU reaches
    left = kPad;
    right = layout_.width;
  }
  const double width = (right - left) / static_cast<double>(switches.size());
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const Box box{
        .x = left + static_cast<double>(i) * width, .y = top, .width = width, .height = kSwitchHeight};
    layout_.nodes.push_back({.node = switches[i], .box = box});
  }
  bottom_ = top + kSwitchHeight;
}

/// Where at a GPU's lower edge its bows begin: those to the left first, the nearest outermost; then those to
/// the right, the farthest first. So bows that need not cross do not.
void HostPlan::placeBows() {
  std::map<int, std::vector<NvlinkSum>> sums;
  for (const int gpu : topology_.all(TopologyKind::gpu)) {
    const Box* const here = layout_.find(gpu);
    if (here == nullptr) continue;
    std::vector<NvlinkSum> all = nvlinksOf(paths_, gpu);
    std::erase_if(all, [&](const NvlinkSum& sum) {
      return at(sum.to).kind != TopologyKind::gpu || layout_.find(sum.to) == nullptr;
    });
    if (all.empty()) continue;
    std::ranges::sort(all, {}, [&](const NvlinkSum& sum) {
      const double distance = layout_.find(sum.to)->middle() - here->middle();
      return distance < 0 ? std::pair(0, -distance) : std::pair(1, -distance);
    });
    sums[gpu] = std::move(all);
  }
  double deepest = 0;
  const double top = bottom_ + kPad / 2;
  const auto foot = [&](int gpu, int to) {
    const Box& box = *layout_.find(gpu);
    const auto& all = sums[gpu];
    const auto place = static_cast<double>(std::ranges::find(all, to, &NvlinkSum::to) - all.begin());
    return box.x + box.width * (place + 1) / (static_cast<double>(all.size()) + 1);
  };
  for (const auto& [gpu, all] : sums) {
    for (const NvlinkSum& sum : all) {
      if (layout_.find(sum.to)->x < layout_.find(gpu)->x) continue;  // drawn from the left
      const double left = foot(gpu, sum.to);
      const double right = foot(sum.to, gpu);
      const double depth = 26 + 0.11 * (right - left);
      deepest = std::max(deepest, depth);
      layout_.bows.push_back(
          {.medium = Medium::nvlink,
           .left = left,
           .right = right,
           .start = layout_.find(gpu)->bottom(),
           .top = top,
           .depth = depth,
           .gbytes_per_s = sum.gbytes_per_s,
           .label = shortGBytes(sum.gbytes_per_s),
           .title = fmt::format("{} to {}: {}, {}", shortLabel(topology_, gpu), shortLabel(topology_, sum.to),
                                countWords(static_cast<std::size_t>(sum.count), "NVLink"),
                                gbytesWords(sum.gbytes_per_s))});
    }
  }
  if (deepest > 0) bottom_ = top + deepest + kPad;
}

}  // namespace

const Box* HostLayout::find(int node) const {
  const auto found = std::ranges::find(nodes, node, &PlacedNode::node);
  return found == nodes.end() ? nullptr : &found->box;
}

HostLayout layOut(const TopologyPaths& paths, double title_height) {
  return HostPlan(paths, title_height).made();
}

}  // namespace tutti::topo
