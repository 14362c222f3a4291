#include "runtime/core/hca_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

constexpr int kLastPort = 255;

int portOf(const std::string& part, std::size_t colon, const std::string& whole) {
  int port = 0;
  const char* const end = part.data() + part.size();
  const auto [last, error] = std::from_chars(part.data() + colon + 1, end, port);
  if (error == std::errc{} && last == end && port >= 1 && port <= kLastPort) return port;
  refuse({.name = "NCCL_IB_HCA"}, whole,
         fmt::format("DEVICE or DEVICE:PORT, with a port of 1 to 255, and commas between; \"{}\" is neither",
                     part));
}

}  // namespace

HcaRule::HcaRule(const std::string& text) {
  std::size_t at = 0;
  for (; at < text.size() && (text[at] == '^' || text[at] == '='); ++at) {
    excludes_ = excludes_ || text[at] == '^';
    is_exact_ = is_exact_ || text[at] == '=';
  }
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    if (part.empty()) continue;
    const std::size_t colon = std::min(part.find(':'), part.size());
    items_.push_back({part.substr(0, colon), colon == part.size() ? -1 : portOf(part, colon, text)});
  }
}

bool HcaRule::allows(const std::string& device, int port) const {
  if (items_.empty()) return true;
  const bool is_listed = std::ranges::any_of(items_, [&](const Item& item) {
    const bool is_named = is_exact_ ? device == item.name : device.starts_with(item.name);
    return is_named && (item.port < 0 || item.port == port);
  });
  return is_listed != excludes_;
}

bool HcaRule::allowsSomeOf(const std::string& device) const {
  for (int port = 1; port <= kLastPort; ++port) {
    if (allows(device, port)) return true;
  }
  return false;
}

}  // namespace tutti
