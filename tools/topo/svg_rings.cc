#include "tools/topo/svg_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/topology/bandwidths.h"
#include "tools/topo/channels_text.h"
#include "tools/topo/svg_style.h"
#include "tools/topo/words.h"

namespace tutti::topo {
namespace {

constexpr std::size_t kMostStrips = kRingColours;
constexpr double kStripHeight = 92;
constexpr double kRestHeight = 22;
constexpr double kHeading = 18;
constexpr double kBend = 24;
constexpr double kRadius = 9;

struct Stop {
  double x = 0;
  std::string label;
  bool is_port = false;
};

/// Whether all seats stand in one row, so that each can have its stop right below.
bool areInOneRow(const HostLayout& layout, const std::vector<int>& seats) {
  return std::ranges::all_of(seats,
                             [&](int node) { return layout.find(node)->y == layout.find(seats.front())->y; });
}

/// Seats that share a node stand side by side under it. Those of several rows: in their order, evenly.
double placeOf(const HostLayout& layout, const std::vector<int>& seats, int seat) {
  const int node = seats[static_cast<std::size_t>(seat)];
  if (!areInOneRow(layout, seats)) return layout.width * (seat + 0.5) / static_cast<double>(seats.size());
  const Box& box = *layout.find(node);
  const auto first = static_cast<int>(std::ranges::find(seats, node) - seats.begin());
  const auto count = static_cast<double>(std::ranges::count(seats, node));
  return box.x + box.width * (seat - first + 0.5) / count;
}

std::vector<Stop> stopsOf(const TopologyPaths& paths, const HostLayout& layout, const std::vector<int>& seats,
                          const HostChannel& channel) {
  std::vector<Stop> stops;
  const auto port = [&](int node) {
    if (node == kNoNode || layout.find(node) == nullptr) return;
    stops.push_back(
        {.x = layout.find(node)->middle(), .label = shortLabel(paths.topology(), node), .is_port = true});
  };
  port(channel.net_in);
  for (const int seat : channel.order) {
    const TopologyNode& node = nodeAt(paths.topology(), seats[static_cast<std::size_t>(seat)]);
    std::string label = std::to_string(seat);
    if (node.kind == TopologyKind::gpu) {
      label = shortLabel(paths.topology(), seats[static_cast<std::size_t>(seat)]);
      label = label.substr(label.rfind(' ') + 1);
    }
    stops.push_back({.x = placeOf(layout, seats, seat), .label = std::move(label)});
  }
  port(channel.net_out);
  return stops;
}

/// To the right above the stops, to the left below: so the way back does not hide the way there.
void drawHop(Canvas& canvas, const Stop& from, const Stop& to, double y, int colour) {
  if (from.x == to.x) return;
  const double side = to.x > from.x ? -1 : 1;
  const double start = y + side * kRadius;
  // Higher the farther, so that hops do not hide each other.
  const double peak = start + side * std::min(kBend * (0.55 + std::abs(to.x - from.x) / 1200), kBend * 1.3);
  const double lean = std::min(std::abs(to.x - from.x) / 3, 40.0) * -side;
  canvas.path(fmt::format("M{} {}C{} {} {} {} {} {}", coordinate(from.x), coordinate(start),
                          coordinate(from.x + lean), coordinate(peak), coordinate(to.x - lean),
                          coordinate(peak), coordinate(to.x), coordinate(start)),
              fmt::format("hop r{}", colour));
  // An arrow head, pointing into the stop along the curve's last bit.
  const double dx = lean;
  const double dy = start - peak;
  const double length = std::hypot(dx, dy);
  const double ux = dx / length;
  const double uy = dy / length;
  constexpr double kLong = 8;
  constexpr double kHalf = 4;
  const double bx = to.x - ux * kLong;
  const double by = start - uy * kLong;
  canvas.path(
      fmt::format("M{} {}L{} {}L{} {}z", coordinate(to.x), coordinate(start), coordinate(bx - uy * kHalf),
                  coordinate(by + ux * kHalf), coordinate(bx + uy * kHalf), coordinate(by - ux * kHalf)),
      fmt::format("f{}", colour));
}

void drawStops(Canvas& canvas, const std::vector<Stop>& stops, double y, int colour) {
  for (const Stop& stop : stops) {
    const std::string fill = fmt::format("station f{}", colour);
    if (stop.is_port) {
      const double width = static_cast<double>(stop.label.size()) * 6.6 + 10;
      canvas.rectangle({.x = stop.x - width / 2, .y = y - kRadius, .width = width, .height = 2 * kRadius},
                       fill, 3);
    } else {
      canvas.circle(stop.x, y, kRadius, fill);
    }
    canvas.text(stop.x, y + 4, stop.label, "on-station");
  }
}

std::string wordsOf(const std::vector<Stop>& stops, bool is_closed) {
  std::string words;
  for (const Stop& stop : stops) words += (words.empty() ? "" : " > ") + stop.label;
  return is_closed ? words + " > " + stops.front().label : words;
}

void drawStrip(Canvas& canvas, const HostLayout& layout, const EqualChannels& equal,
               const std::vector<Stop>& stops, bool is_closed, double speed, double top, int colour) {
  const double y = top + kHeading + kBend + kRadius + 2;
  Canvas group = canvas.group("ring");
  const std::string name = "ring of " + channelWords(equal.numbers);
  group.title(fmt::format("{}: {}", name, wordsOf(stops, is_closed)));
  group.path(fmt::format("M10 {}H{}", coordinate(y), coordinate(layout.width - 10)), "track");
  std::string heading = name;
  if (speed < kLocalGBytes)
    heading += fmt::format(", {}{}", gbytesWords(speed), equal.numbers.size() > 1 ? " each" : "");
  if (!is_closed && stops.front().is_port) {
    const bool is_one = equal.channel.net_in == equal.channel.net_out;
    heading += is_one ? ", from and to other hosts by " + stops.front().label
                      : fmt::format(", from other hosts by {}, to them by {}", stops.front().label,
                                    stops.back().label);
  }
  group.text(10, top + 12, heading, fmt::format("strong f{}", colour), "start");
  for (std::size_t i = 0; i + 1 < stops.size(); ++i) drawHop(group, stops[i], stops[i + 1], y, colour);
  if (is_closed && stops.size() > 1) drawHop(group, stops.back(), stops.front(), y, colour);
  drawStops(group, stops, y, colour);
}

bool isWorthDrawing(const ChannelGraph& rings) {
  return !rings.channels.empty() &&
         (rings.channels.front().order.size() > 1 || rings.channels.front().net_in != kNoNode);
}

}  // namespace

double ringsHeight(const ChannelGraph& rings) {
  if (!isWorthDrawing(rings)) return 0;
  const std::size_t count = equalChannels(rings).size();
  const auto strips = static_cast<double>(std::min(count, kMostStrips));
  return strips * kStripHeight + (count > kMostStrips ? kRestHeight : 0);
}

void drawRings(Canvas canvas, const TopologyPaths& paths, const HostLayout& layout,
               const std::vector<int>& seats, const ChannelGraph& rings, bool is_closed, double top) {
  if (!isWorthDrawing(rings)) return;
  const std::vector<EqualChannels> all = equalChannels(rings);
  const double speed =
      is_closed ? rings.intra_gbytes_per_s : std::min(rings.intra_gbytes_per_s, rings.inter_gbytes_per_s);
  for (std::size_t i = 0; i < std::min(all.size(), kMostStrips); ++i, top += kStripHeight) {
    drawStrip(canvas, layout, all[i], stopsOf(paths, layout, seats, all[i].channel), is_closed, speed, top,
              static_cast<int>(i));
  }
  if (all.size() > kMostStrips)
    canvas.text(10, top + 14, fmt::format("and {} other orders", all.size() - kMostStrips), "small", "start");
}

}  // namespace tutti::topo
