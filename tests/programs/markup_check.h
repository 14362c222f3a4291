// Whether text is one well-formed XML element, for pages that tests look at. Knows elements, attributes, text
// and entities; nothing else may occur.
#pragma once

#include <regex>
#include <string>
#include <vector>

namespace tutti::test {

/// "" or the first error with what is there.
inline std::string markupError(const std::string& text) {
  static const std::regex tag(R"(<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\s+[a-zA-Z-]+="[^"<]*")*)\s*(/?)>)");
  static const std::regex stray(R"(&(?!(amp|lt|gt|quot|#[0-9]+);))");
  std::vector<std::string> open;
  bool closed = false;  // the outermost element
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find('<', at), text.size());
    const std::string between = text.substr(at, next - at);
    const std::string here = text.substr(next, 60);
    if (std::regex_search(between, stray)) return "a bare & before: " + here;
    if (open.empty() && between.find_first_not_of(" \n") != std::string::npos)
      return "text outside before: " + here;
    if (next == text.size()) break;
    const std::size_t end = std::min(text.find('>', next), text.size() - 1);
    const std::string markup = text.substr(next, end + 1 - next);
    std::smatch found;
    if (!std::regex_match(markup, found, tag)) return "no tag: " + here;
    if (std::regex_search(markup, stray)) return "a bare & in: " + here;
    if (closed) return "a second element: " + here;
    if (found[1].length() > 0) {
      if (open.empty() || open.back() != found[2].str()) return "closes what is not open: " + here;
      open.pop_back();
    } else if (found[4].length() == 0) {
      open.push_back(found[2].str());
    }
    closed = open.empty();
    at = end + 1;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

}  // namespace tutti::test
