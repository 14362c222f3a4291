#include "runtime/core/address_range.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace tutti {

using Family = NetAddress::Family;

bool AddressRange::contains(const NetAddress& address) const {
  if (address.family != base.family) return false;
  for (unsigned bit = 0; bit < bits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
    if (((address.bytes[bit / 8] ^ base.bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

std::optional<AddressRange> parseAddressRange(std::string_view text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string address(text.substr(0, slash));
  AddressRange range;
  if (::inet_pton(AF_INET, address.c_str(), range.base.bytes.data()) == 1) {
    range.base.family = Family::ipv4;
    range.bits = 32;
  } else if (::inet_pton(AF_INET6, address.c_str(), range.base.bytes.data()) == 1) {
    range.base.family = Family::ipv6;
    range.bits = 128;
  } else {
    return std::nullopt;
  }
  if (slash == text.size()) return range;
  const unsigned most = range.bits;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + slash + 1, end, range.bits);
  if (error != std::errc{} || last != end || range.bits > most) return std::nullopt;
  return range;
}

}  // namespace tutti
