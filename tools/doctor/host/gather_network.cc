#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "tools/doctor/host/gather.h"
#include "tools/doctor/system.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

/// /proc/net/route: the interface whose destination and mask are 0; else that of IPv6.
std::string defaultRoute() {
  std::ifstream file("/proc/net/route");
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string interface;
    std::string destination;
    if (words >> interface >> destination && destination == "00000000") return interface;
  }
  std::ifstream file6("/proc/net/ipv6_route");
  while (std::getline(file6, line)) {
    const bool is_default = line.starts_with(std::string(32, '0') + " 00 ");
    std::string interface = line.substr(line.find_last_of(' ') + 1);
    if (is_default && interface != "lo") return interface;
  }
  return "";
}

bool hasPacketFilter() {
  if (!firstLine("/proc/net/ip_tables_names").empty()) return true;
  return !entriesOf("/sys/module/nf_tables").empty() || !entriesOf("/sys/module/ip_tables").empty();
}

}  // namespace

NetworkFacts gatherNetwork(const NetworkSettings& settings) {
  NetworkFacts facts;
  try {
    facts.usable = chooseInterfaces(interfacesHere(), settings).usable;
  } catch (const Error& error) {
    facts.why_none = error.what();
  }
  for (const Interface& interface : facts.usable) {
    const std::string folder = fmt::format("/sys/class/net/{}/", interface.name);
    NetworkDevice device;
    device.mtu = static_cast<int>(numberIn(folder + "mtu", 0));
    device.megabits = static_cast<int>(numberIn(folder + "speed", -1));
    if (device.megabits == 0) device.megabits = -1;
    device.has_carrier = numberIn(folder + "carrier", 1) != 0;
    facts.devices[interface.name] = device;
  }
  facts.default_route = defaultRoute();
  facts.may_have_firewall = hasPacketFilter();
  return facts;
}

}  // namespace tutti::doctor
