#include "tools/train/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/train/html_report.h"

namespace tutti::train {
namespace {

// Units of the drawing; the page scales it to its width.
constexpr double kWidth = 760;
constexpr double kHeight = 300;
constexpr double kLeft = 72;
constexpr double kRight = 16;
constexpr double kTop = 14;
constexpr double kBottom = 46;

/// Where `value` lies between the ends of the axis, from 0 to 1.
double fraction(const Axis& axis, double value) {
  if (axis.logarithmic) return std::log(value / axis.low) / std::log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

std::string markAt(double x, double y, int shape) {
  constexpr double kSize = 5;
  if (shape == 1) {
    return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{}" height="{}")", x - kSize, y - kSize,
                       2 * kSize, 2 * kSize);
  }
  if (shape == 2) {
    return fmt::format(R"(<path d="M{:.1f} {:.1f}l{} {}h-{}z")", x, y - 6, 6, 11, 12);
  }
  return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{}")", x, y, kSize);
}

}  // namespace

std::string shortNumber(double value) {
  return value != 0 && std::abs(value) < 1e6 && std::abs(value) >= 1000 ? fmt::format("{:.0f}", value)
                                                                        : fmt::format("{:.4g}", value);
}

std::vector<double> ticksOf(const Axis& axis) {
  std::vector<double> ticks;
  if (axis.logarithmic) {
    const auto last = static_cast<int>(std::floor(std::log2(axis.high) + 1e-9));
    for (auto power = static_cast<int>(std::ceil(std::log2(axis.low) - 1e-9)); power <= last; ++power) {
      ticks.push_back(std::ldexp(1.0, power));
    }
    return ticks;
  }
  const double rough = (axis.high - axis.low) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  if (axis.whole) step = std::max(step, 1.0);
  // By whole multiples: adding up would give 0.30000000000000004, and -0.
  const auto last = static_cast<long>(std::floor(axis.high / step + 1e-9));
  for (auto k = static_cast<long>(std::ceil(axis.low / step - 1e-9)); k <= last; ++k) {
    ticks.push_back(static_cast<double>(k) * step);
  }
  return ticks;
}

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most, std::size_t& per_point) {
  per_point = (points.size() + most - 1) / most;
  if (per_point <= 1) return points;
  std::vector<Point> result;
  for (std::size_t at = 0; at < points.size(); at += per_point) {
    const std::size_t count = std::min(per_point, points.size() - at);
    Point mean;
    for (std::size_t i = at; i < at + count; ++i) {
      mean.x += points[i].x / static_cast<double>(count);
      mean.y += points[i].y / static_cast<double>(count);
    }
    result.push_back(mean);
  }
  return result;
}

Chart::Chart(std::string name, Axis x, Axis y) : name_(std::move(name)), x_(std::move(x)), y_(std::move(y)) {
  // An axis without length has no scale.
  for (Axis* axis : {&x_, &y_}) {
    if (!(axis->high > axis->low)) axis->high = axis->logarithmic ? axis->low * 2 : axis->low + 1;
  }
}

double Chart::placeX(double x) const { return kLeft + fraction(x_, x) * (kWidth - kLeft - kRight); }

double Chart::placeY(double y) const {
  return kHeight - kBottom - fraction(y_, y) * (kHeight - kTop - kBottom);
}

void Chart::line(const std::vector<Point>& points, const std::string& css_class) {
  std::string path;
  bool broken = true;
  for (const Point& point : points) {
    const bool drawn = std::isfinite(point.x) && std::isfinite(point.y);
    // "h0": a point without neighbours shows, as a dot.
    if (drawn) {
      path += fmt::format("{}{:.1f} {:.1f}{}", broken ? "M" : "L", placeX(point.x), placeY(point.y),
                          broken ? "h0" : "");
    }
    broken = !drawn;
  }
  body_ += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", css_class, path);
}

void Chart::marks(const std::vector<Point>& points, const std::string& css_class, int shape) {
  for (const Point& point : points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    body_ += fmt::format("{} class=\"mark {}\"><title>{}</title></{}>\n",
                         markAt(placeX(point.x), placeY(point.y), shape), css_class, escaped(point.note),
                         shape == 0 ? "circle" : (shape == 1 ? "rect" : "path"));
  }
}

void Chart::rule(double y, const std::string& words) {
  const double at = placeY(y);
  body_ += fmt::format(
      "<path class=\"rule\" d=\"M{} {:.1f}H{}\"/><text class=\"words\" x=\"{}\" y=\"{:.1f}\" "
      "text-anchor=\"end\">{}</text>\n",
      kLeft, at, kWidth - kRight, kWidth - kRight - 4, at - 10, escaped(words));
}

std::string Chart::frame() const {
  std::string text;
  const double bottom = kHeight - kBottom;
  for (const double tick : ticksOf(y_)) {
    const double y = placeY(tick);
    text += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{}</text>\n",
        kLeft, y, kWidth - kRight, kLeft - 8, y + 4, shortNumber(tick));
  }
  for (const double tick : ticksOf(x_)) {
    const double x = placeX(tick);
    text += fmt::format(
        "<path class=\"axis\" d=\"M{:.1f} {}v5\"/><text x=\"{:.1f}\" y=\"{}\" "
        "text-anchor=\"middle\">{}</text>\n",
        x, bottom, x, bottom + 19, shortNumber(tick));
  }
  text += fmt::format("<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n", kLeft, kTop, bottom, kWidth - kRight);
  text += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                      (kLeft + kWidth - kRight) / 2, kHeight - 8, escaped(x_.label));
  const double middle = (kTop + bottom) / 2;
  text += fmt::format(
      "<text class=\"label\" x=\"14\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
      "{0})\">{1}</text>\n",
      middle, escaped(y_.label));
  return text;
}

std::string Chart::svg() const {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}</svg>\n", kWidth,
                     kHeight, escaped(name_), frame(), body_);
}

}  // namespace tutti::train
