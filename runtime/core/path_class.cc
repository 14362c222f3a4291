#include "runtime/core/path_class.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

constexpr std::string_view kNames[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                       "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
constexpr PathClass kByNumber[] = {PathClass::loc, PathClass::pix, PathClass::pxb, PathClass::phb,
                                   PathClass::sys};

}  // namespace

std::string_view name(PathClass path_class) { return kNames[static_cast<int>(path_class)]; }

std::optional<PathClass> pathClassOf(std::string_view text) {
  const std::size_t place = placeOf(text, kNames);
  if (place < std::size(kNames)) return static_cast<PathClass>(place);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return kByNumber[std::min<std::size_t>(number, std::size(kByNumber) - 1)];
}

}  // namespace tutti
