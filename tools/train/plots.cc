#include "tools/train/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tools/train/html_report.h"
#include "tools/train/svg_chart.h"
#include "tools/train/traffic.h"

namespace tutti::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 400;
constexpr std::size_t kColours = 8;

struct LegendEntry {
  std::string css_class;
  std::string words;
};

std::string figure(const std::string& title, const std::vector<LegendEntry>& legend, const std::string& chart,
                   const std::string& caption) {
  std::string entries;
  for (const LegendEntry& entry : legend) {
    entries +=
        fmt::format("<li><span class=\"swatch {}\"></span>{}</li>", entry.css_class, escaped(entry.words));
  }
  return fmt::format(
      "<figure>\n<h2>{}</h2>\n<ul class=\"legend\">{}</ul>\n{}<figcaption>{}</figcaption>\n</figure>\n",
      escaped(title), entries, chart, escaped(caption));
}

/// Numbers that were no numbers are null in the document.
double numberOr(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string rankClass(std::size_t rank) {
  return fmt::format("s{}{}", rank % kColours, rank >= kColours ? " dashed" : "");
}

/// The ends of the finite values, with a margin.
Axis axisAround(std::string label, const std::vector<std::vector<Point>>& lines) {
  Axis axis{std::move(label), std::numeric_limits<double>::infinity(),
            -std::numeric_limits<double>::infinity()};
  for (const auto& points : lines) {
    for (const Point& point : points) {
      if (!std::isfinite(point.y)) continue;
      axis.low = std::min(axis.low, point.y);
      axis.high = std::max(axis.high, point.y);
    }
  }
  if (!(axis.low <= axis.high)) return {axis.label, 0, 1};
  const double margin = 0.05 * (axis.high - axis.low);
  axis.low = axis.low - margin < 0 && axis.low >= 0 ? 0 : axis.low - margin;
  axis.high += margin;
  return axis;
}

std::size_t ranksOf(const Json& document) {
  return document.at("configuration").at("ranks").get<std::size_t>();
}

/// The unit in which `bytes` has one to three digits before the point.
struct ByteUnit {
  const char* name;
  double bytes;
};
ByteUnit unitFor(double bytes) {
  if (bytes >= 1e9) return {"GB", 1e9};
  if (bytes >= 1e6) return {"MB", 1e6};
  return bytes >= 1e3 ? ByteUnit{"kB", 1e3} : ByteUnit{"bytes", 1};
}

Point trafficPoint(const Json& point) {
  const auto sequences = point.at("sequences").get<double>();
  const auto bytes = point.at("payload_bytes").get<std::uint64_t>();
  return {sequences, static_cast<double>(bytes),
          fmt::format("{} sequences of {}: {} bytes", sequences, point.at("sequence").get<std::size_t>(),
                      grouped(bytes))};
}

}  // namespace

std::string grouped(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += "\u00a0";
    result += digits[i];
  }
  return result;
}

std::string lossFigure(const Json& document) {
  const std::size_t nranks = ranksOf(document);
  std::vector<std::vector<Point>> lines(nranks + 1);  // the last one: the batch
  for (const Json& step : document.at("steps")) {
    if (step.at("losses").is_null()) continue;
    const auto x = step.at("step").get<double>();
    for (std::size_t rank = 0; rank < nranks; ++rank) {
      lines[rank].push_back({x, numberOr(step.at("losses")[rank]), ""});
    }
    lines[nranks].push_back({x, numberOr(step.at("loss")), ""});
  }
  const double last = lines[nranks].empty() ? 1 : lines[nranks].back().x;
  std::size_t per_point = 1;
  for (auto& points : lines) points = thinned(points, kMostPoints, per_point);

  Chart chart("Loss of each replica and of the whole batch by step",
              {.label = "step", .high = last, .whole = true}, axisAround("loss (nats per character)", lines));
  std::vector<LegendEntry> legend;
  for (std::size_t rank = 0; rank < nranks; ++rank) {
    chart.line(lines[rank], "thin " + rankClass(rank));
    // So few that a line of them is easily missed.
    if (lines[rank].size() <= 3) chart.marks(lines[rank], rankClass(rank), 0);
    legend.push_back({rankClass(rank), fmt::format("rank {}", rank)});
  }
  chart.line(lines[nranks], "mean");
  legend.push_back({"mean", "whole batch"});
  std::string caption =
      "Each rank's loss over its own sequences, before the update of the step. The lines differ because the "
      "ranks see "
      "different text; the replicas that they are measured on are the same.";
  if (per_point > 1) caption += fmt::format(" Each point is the mean of {} steps.", per_point);
  return figure("Loss of each replica", legend, chart.svg(), caption);
}

std::string agreementFigure(const Json& document) {
  const Json& replicas = document.at("replicas");
  std::size_t made = 0;
  std::size_t equal = 0;
  for (const Json& step : document.at("steps")) {
    if (step.at("step") == 0) continue;
    ++made;
    if (step.at("replicas_equal").get<bool>()) ++equal;
  }
  std::string caption = fmt::format(
      "After each step every rank hashes its whole state (parameters and optimizer). With averaging the {} "
      "hashes were "
      "equal after {} of {} steps",
      ranksOf(document), equal, made);
  caption += replicas.at("identical").get<bool>()
                 ? "."
                 : fmt::format("; the first difference was after step {}.",
                               replicas.at("first_difference_step").get<std::size_t>());
  caption +=
      " Below, the same training without averaging: a short extra run. A rank differs when its hash is not "
      "the most "
      "frequent one; where all differ, rank 0 is the one they are held against.";
  return figure("Do the replicas agree?", {{"agrees", "equal hash"}, {"differs", "different hash"}},
                agreementGrid(document), caption);
}

std::string trafficFigure(const Json& document) {
  const std::size_t nranks = ranksOf(document);
  const auto gradient = document.at("payload").at("gradient_bytes").get<double>();
  const double ring = document.at("payload").at("ring_step_bytes").get<double>();
  constexpr std::array<const char*, 3> kSeries{"batch", "sequence", "uneven"};
  std::array<std::vector<Point>, 3> points;
  Axis x{"sequences per step, over all ranks (logarithmic)", static_cast<double>(nranks), 0, true};
  double most = ring;
  bool exact = true;
  for (const Json& measured : document.at("experiments").at("traffic")) {
    const auto series = std::find(kSeries.begin(), kSeries.end(), measured.at("series").get<std::string>());
    const Point point = trafficPoint(measured);
    points[static_cast<std::size_t>(series - kSeries.begin())].push_back(point);
    x.low = std::min(x.low, point.x);
    x.high = std::max(x.high, point.x);
    most = std::max(most, point.y);
    exact = exact && measured.at("payload_bytes").get<double>() == ring;
  }
  x.low *= 0.8;
  x.high *= 1.25;
  const ByteUnit unit = unitFor(most);
  Chart chart("Bytes that averaging moved by batch size", x,
              {fmt::format("payload per step, all ranks ({})", unit.name), 0, 1.3 * most / unit.bytes});
  chart.rule(ring / unit.bytes,
             fmt::format("2(n − 1) × gradient = {} × {}", 2 * (nranks - 1), humanBytes(gradient)));
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (Point& point : points[i]) point.y /= unit.bytes;
    chart.marks(points[i], fmt::format("s{}", i), static_cast<int>(i));
  }
  const auto sequence = document.at("configuration").at("batch").at("sequence").get<std::size_t>();
  const std::string caption = fmt::format(
      "Payload that the library counted during the averaging of one step, summed over ranks, headers apart: "
      "one run of "
      "a step per point. {}",
      exact ? "All points have exactly the bytes of a ring, whatever the work: the gradient has as many "
              "numbers as the "
              "model has parameters, however many sequences it was made from."
            : "Not all points have the bytes of a ring: the library chose another algorithm, or the work "
              "changed what "
              "was sent.");
  return figure("Bytes on the wire against batch size",
                {{"s0 dot", fmt::format("equal slices, sequences of {}", sequence)},
                 {"s1 square", "sequences of 4 and 16"},
                 {"s2 triangle", "uneven: 4 and 400 sequences in turn"}},
                chart.svg(), caption);
}

std::string divergenceFigure(const Json& document) {
  std::vector<std::vector<Point>> lines(2);
  for (const Json& point : document.at("experiments").at("divergence")) {
    const auto x = point.at("step").get<double>();
    lines[0].push_back({x, 100 * numberOr(point.at("spread_without_averaging")), ""});
    lines[1].push_back({x, 100 * numberOr(point.at("spread_with_averaging")), ""});
  }
  Chart chart("Distance between replicas with and without averaging by step",
              {.label = "step", .high = lines[0].empty() ? 1 : lines[0].back().x, .whole = true},
              axisAround("distance between replicas (%)", lines));
  chart.line(lines[0], "thick s1");
  chart.line(lines[1], "thick s0");
  const double with = lines[1].empty() ? 0 : lines[1].back().y;
  const double without = lines[0].empty() ? 0 : lines[0].back().y;
  return figure(
      "Divergence without averaging", {{"s1", "without averaging"}, {"s0", "with averaging"}}, chart.svg(),
      fmt::format("Distance: the largest over ranks of |parameters − those of rank 0| / |those of rank 0|. "
                  "After {} steps: {:.3g} "
                  "% without averaging, {} with it. Both are short extra runs from the same seed "
                  "on the same batches.",
                  lines[0].empty() ? 0 : lines[0].size() - 1, without,
                  with == 0 ? std::string("exactly 0") : fmt::format("{:.3g} %", with)));
}

}  // namespace tutti::train
