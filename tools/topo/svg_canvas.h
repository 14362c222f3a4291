// SVG elements, one call each. Colours come from the style sheet (svg_style.h) by class.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "tools/topo/layout.h"

namespace tutti::topo {

/// At most one digit behind the point: "12", "12.5".
std::string coordinate(double value);

/// `text` cut to what fits in `width`, with "…" at its end.
std::string fitted(const std::string& text, double width, double font_size);

/// A group of elements, which is part of a document that lives longer.
class Canvas {
 public:
  explicit Canvas(pugi::xml_node group) : group_(group) {}

  /// A group inside this one.
  Canvas group(const std::string& css_class, const std::string& id = "");
  Canvas shifted(double x, double y);
  /// What is said of this group when it is pointed at, and by screen readers.
  void title(const std::string& text);
  void rectangle(const Box& box, const std::string& css_class, double radius = 0);
  /// anchor: "start", "middle" or "end".
  void text(double x, double y, const std::string& text, const std::string& css_class,
            const char* anchor = "middle");
  void path(const std::string& commands, const std::string& css_class, double stroke_width = 0);
  void circle(double x, double y, double radius, const std::string& css_class);

 private:
  pugi::xml_node add(const char* element, const std::string& css_class);

  pugi::xml_node group_;
};

/// Of a line that stands for a link: wider by its bandwidth's root, so that 3 and 900 GB/s both show.
double strokeWidth(double gbytes_per_s);

/// "pci", "nvlink", ...: the class of what stands for a medium.
const char* classOf(Medium medium);

}  // namespace tutti::topo
