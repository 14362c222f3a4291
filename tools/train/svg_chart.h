// Line and point charts as SVG text. Colours come from the page's style sheet by class, so that it can have a
// light and a dark form: s0 to s7 for series, "rule" for lines that mark a value, "axis" and "grid" for the
// frame.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::train {

struct Point {
  double x = 0;
  double y = 0;
  std::string note;  ///< shown when the pointer rests on its mark
};

struct Axis {
  std::string label;  ///< with the unit
  double low = 0;
  double high = 1;
  bool logarithmic = false;  ///< low > 0 then
  bool whole = false;        ///< ticks are whole numbers
};

/// "0", "0.25", "1500", "2e+06": at most four digits.
std::string shortNumber(double value);

/// Round values within the axis: multiples of 1, 2 or 5 times a power of ten, or powers of 2 on a logarithmic
/// one.
std::vector<double> ticksOf(const Axis& axis);

/// At most `most` points: means over equally many neighbours. `per_point` is how many.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most, std::size_t& per_point);

/// Points that are not finite are left out; a line is broken there.
class Chart {
 public:
  /// `name` is what a screen reader says.
  Chart(std::string name, Axis x, Axis y);

  void line(const std::vector<Point>& points, const std::string& css_class);
  /// shape: 0 circle, 1 square, 2 triangle.
  void marks(const std::vector<Point>& points, const std::string& css_class, int shape);
  /// A horizontal line across, with words above its right end.
  void rule(double y, const std::string& words);

  std::string svg() const;

 private:
  double placeX(double x) const;
  double placeY(double y) const;
  std::string frame() const;

  std::string name_;
  Axis x_;
  Axis y_;
  std::string body_;
};

}  // namespace tutti::train
