#include "runtime/topology/xml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "runtime/topology/file_error.h"
#include "runtime/topology/plain_text.h"

namespace tutti {
namespace {

constexpr std::size_t kMostRemarks = 100;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

/// The whole text as a number, or false.
template <class T>
bool parse(std::string_view text, T& value) {
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool parseHex(std::string_view text, std::uint64_t& value) {
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

bool isHex(std::string_view text) { return text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X"; }

std::string quoted(std::string_view text) { return '"' + shown(text) + '"'; }

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return plainText(text);
  std::size_t end = kMost;
  while (end > kMost - 4 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  return plainText(text.substr(0, end)) + "...";
}

std::string textOfFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw FileError(path, "is a directory, expected XML");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw FileError(path, fmt::format("cannot be opened: {}", std::generic_category().message(errno)));
  std::string text;
  std::vector<char> part(std::size_t{1} << 20);
  do {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  } while (in && text.size() <= kMostFileBytes);
  if (in.bad()) throw FileError(path, "cannot be read");
  return text;
}

XmlFile::XmlFile(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {
  if (text.size() > kMostFileBytes) {
    throw FileError(name_, 1, fmt::format("larger than {} MiB", kMostFileBytes >> 20));
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw FileError(name_, lineAt(static_cast<std::ptrdiff_t>(zero)), "a zero byte: no XML in UTF-8");
  }
  // A fragment may have text outside of elements; else that would not be seen.
  const pugi::xml_parse_result result = document_.load_buffer(
      text.data(), text.size(), pugi::parse_default | pugi::parse_fragment, pugi::encoding_utf8);
  if (!result) {
    const bool at_end = result.offset + 1 >= static_cast<std::ptrdiff_t>(text.size());
    throw FileError(name_, lineAt(result.offset),
                    fmt::format("no XML: {}{}", result.description(),
                                at_end ? ", at the end of the file, as if it were truncated" : ""));
  }
  root_ = document_.document_element();
  if (!root_) throw FileError(name_, 1, "no XML: it holds no element");
  for (const pugi::xml_node other : document_.children()) {
    if (other == root_) continue;
    if (other.type() == pugi::node_element) fail(other, "a second element at the top");
    const std::string_view outside = trimmed(other.value());
    if (outside.empty() || other.type() == pugi::node_comment) continue;
    throw FileError(name_, lineAt(other.offset_debug() + (outside.data() - other.value())),
                    fmt::format("no XML: text outside of <{}>: {}", shown(root_.name()), quoted(outside)));
  }
  makePlain();
}

void XmlFile::makePlain() {
  for (pugi::xml_node element = root_; element;) {
    for (pugi::xml_attribute attribute : element.attributes()) {
      const std::string plain = plainText(attribute.value());
      if (plain == attribute.value()) continue;
      remark(element, fmt::format("attribute {} of <{}> has characters that no name has; \"{}\" is used",
                                  quoted(attribute.name()), shown(element.name()), shown(plain)));
      attribute.set_value(plain.c_str());
    }
    if (element.first_child()) {
      element = element.first_child();
      continue;
    }
    while (element && element != root_ && !element.next_sibling()) element = element.parent();
    element = element == root_ ? pugi::xml_node() : element.next_sibling();
  }
}

int XmlFile::lineAt(std::ptrdiff_t offset) const {
  if (line_ends_.empty()) {
    for (std::size_t i = text_.find('\n'); i != std::string_view::npos; i = text_.find('\n', i + 1)) {
      line_ends_.push_back(static_cast<std::ptrdiff_t>(i));
    }
    line_ends_.push_back(static_cast<std::ptrdiff_t>(text_.size()));
  }
  const auto it = std::lower_bound(line_ends_.begin(), line_ends_.end(), offset);
  return static_cast<int>(std::min(it, line_ends_.end() - 1) - line_ends_.begin()) + 1;
}

int XmlFile::line(pugi::xml_node element) const { return lineAt(element.offset_debug()); }

void XmlFile::fail(pugi::xml_node element, const std::string& reason) const {
  throw FileError(name_, line(element), reason);
}

void XmlFile::remark(pugi::xml_node element, const std::string& text) {
  if (remarks_.size() == kMostRemarks) {
    ++more_remarks_;
    return;
  }
  remarks_.push_back(fmt::format("line {}: {}", line(element), text));
}

void XmlFile::remarkElement(pugi::xml_node element) {
  remark(element,
         fmt::format("<{}> in <{}> is ignored", shown(element.name()), shown(element.parent().name())));
}

std::vector<std::string> XmlFile::remarks() const {
  std::vector<std::string> all = remarks_;
  if (more_remarks_ > 0) all.push_back(fmt::format("and {} more", more_remarks_));
  return all;
}

void XmlFile::expectAttributes(pugi::xml_node element, std::initializer_list<std::string_view> known) {
  std::uint64_t seen = 0;
  for (const pugi::xml_attribute attribute : element.attributes()) {
    const auto* const it = std::find(known.begin(), known.end(), std::string_view(attribute.name()));
    if (it == known.end()) {
      remark(element,
             fmt::format("attribute {} of <{}> is ignored", quoted(attribute.name()), element.name()));
      continue;
    }
    const std::uint64_t bit = std::uint64_t{1} << (it - known.begin());
    if ((seen & bit) != 0) fail(element, fmt::format("<{}> has {} twice", element.name(), quoted(*it)));
    seen |= bit;
  }
}

std::string_view XmlFile::text(pugi::xml_node element, const char* attribute) {
  return trimmed(element.attribute(attribute).value());
}

std::optional<std::int64_t> XmlFile::integer(pugi::xml_node element, const char* attribute,
                                             std::int64_t least, std::int64_t most) const {
  const std::string_view given = text(element, attribute);
  if (given.empty()) return std::nullopt;
  std::int64_t value = 0;
  std::uint64_t hex = 0;
  bool is_number = parse(given, value);
  if (!is_number && isHex(given) && parseHex(given.substr(2), hex) && hex <= INT64_MAX) {
    is_number = true;
    value = static_cast<std::int64_t>(hex);
  }
  if (!is_number || value < least || value > most) {
    failAttribute(element, attribute, fmt::format("a whole number from {} to {}", least, most));
  }
  return value;
}

int XmlFile::integerOr(pugi::xml_node element, const char* attribute, int least, int most,
                       int otherwise) const {
  return static_cast<int>(integer(element, attribute, least, most).value_or(otherwise));
}

double XmlFile::number(pugi::xml_node element, const char* attribute, double most) const {
  const std::string_view given = text(element, attribute);
  if (given.empty()) return 0;
  double value = 0;
  // "Not a number" compares as false.
  if (!parse(given, value) || !(value >= 0 && value <= most)) {
    failAttribute(element, attribute, fmt::format("a number from 0 to {}", most));
  }
  return std::abs(value);  // -0 is 0
}

std::uint64_t XmlFile::bits(pugi::xml_node element, const char* attribute) const {
  const std::string_view given = text(element, attribute);
  std::uint64_t value = 0;
  if (!given.empty() && !(isHex(given) ? parseHex(given.substr(2), value) : parse(given, value))) {
    failAttribute(element, attribute, "a number of 64 bits, such as 0x5a");
  }
  return value;
}

void XmlFile::failAttribute(pugi::xml_node element, const char* attribute,
                            const std::string& expected) const {
  fail(element, fmt::format("attribute \"{}\" of <{}> is {}, expected {}", attribute, element.name(),
                            quoted(element.attribute(attribute).value()), expected));
}

}  // namespace tutti
