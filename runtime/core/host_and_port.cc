#include "runtime/core/host_and_port.h"

#include <fmt/format.h>

#include <charconv>

#include "tutti/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse(std::string_view variable, std::string_view text) {
  throw Error(ncclInvalidUsage,
              fmt::format("{}=\"{}\": expected HOST:PORT or [IPv6]:PORT with a port from 1 to 65535, such as "
                          "10.0.0.5:4711 or [fd00::5]:4711",
                          variable, text));
}

}  // namespace

HostAndPort parseHostAndPort(std::string_view text, std::string_view variable) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) refuse(variable, text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse(variable, text);  // IPv6 without brackets: where the port begins is a guess
  }
  HostAndPort result{.host = std::string(host), .port = 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (host.empty() || error != std::errc{} || end != port.data() + port.size() || result.port == 0) {
    refuse(variable, text);
  }
  return result;
}

}  // namespace tutti
