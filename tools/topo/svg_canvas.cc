#include "tools/topo/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tutti::topo {

std::string coordinate(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{:g}", rounded == 0 ? 0.0 : rounded);
}

std::string fitted(const std::string& text, double width, double font_size) {
  constexpr double kLetterPerSize = 0.55;
  const auto most = static_cast<std::size_t>(std::max(1.0, width / (font_size * kLetterPerSize)));
  if (text.size() <= most) return text;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // inside a UTF-8 letter
  return text.substr(0, end) + "…";
}

pugi::xml_node Canvas::add(const char* element, const std::string& css_class) {
  pugi::xml_node node = group_.append_child(element);
  if (!css_class.empty()) node.append_attribute("class") = css_class.c_str();
  return node;
}

Canvas Canvas::group(const std::string& css_class, const std::string& id) {
  pugi::xml_node node = add("g", css_class);
  if (!id.empty()) node.append_attribute("id") = id.c_str();
  return Canvas(node);
}

Canvas Canvas::shifted(double x, double y) {
  pugi::xml_node node = add("g", "");
  node.append_attribute("transform") = fmt::format("translate({} {})", coordinate(x), coordinate(y)).c_str();
  return Canvas(node);
}

void Canvas::title(const std::string& text) { group_.prepend_child("title").text() = text.c_str(); }

void Canvas::rectangle(const Box& box, const std::string& css_class, double radius) {
  pugi::xml_node node = add("rect", css_class);
  node.append_attribute("x") = coordinate(box.x).c_str();
  node.append_attribute("y") = coordinate(box.y).c_str();
  node.append_attribute("width") = coordinate(box.width).c_str();
  node.append_attribute("height") = coordinate(box.height).c_str();
  if (radius > 0) node.append_attribute("rx") = coordinate(radius).c_str();
}

void Canvas::text(double x, double y, const std::string& text, const std::string& css_class,
                  const char* anchor) {
  pugi::xml_node node = add("text", css_class);
  node.append_attribute("x") = coordinate(x).c_str();
  node.append_attribute("y") = coordinate(y).c_str();
  node.append_attribute("text-anchor") = anchor;
  node.text() = text.c_str();
}

void Canvas::path(const std::string& commands, const std::string& css_class, double stroke_width) {
  pugi::xml_node node = add("path", css_class);
  node.append_attribute("d") = commands.c_str();
  if (stroke_width > 0) node.append_attribute("stroke-width") = coordinate(stroke_width).c_str();
}

void Canvas::circle(double x, double y, double radius, const std::string& css_class) {
  pugi::xml_node node = add("circle", css_class);
  node.append_attribute("cx") = coordinate(x).c_str();
  node.append_attribute("cy") = coordinate(y).c_str();
  node.append_attribute("r") = coordinate(radius).c_str();
}

double strokeWidth(double gbytes_per_s) {
  constexpr double kThinnest = 1;
  constexpr double kWidest = 18;
  return std::clamp(1.05 * std::sqrt(gbytes_per_s), kThinnest, kWidest);
}

const char* classOf(Medium medium) {
  switch (medium) {
    case Medium::pci:
      return "pci";
    case Medium::nvlink:
      return "nvlink";
    case Medium::c2c:
      return "c2c";
    case Medium::socket:
      return "socket";
    case Medium::net:
      return "net";
  }
  return "";
}

}  // namespace tutti::topo
