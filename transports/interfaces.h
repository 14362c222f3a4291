// Which network interface to use: NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY, and what is taken without them.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/net_address.h"
#include "runtime/core/settings.h"

namespace tutti {

/// One address of an interface; an interface may have several.
struct Interface {
  std::string name;
  NetAddress address;  ///< port 0
  bool is_up = true;

  friend bool operator==(const Interface&, const Interface&) = default;
};

/// All of this network namespace, in the system's order. Throws Error(ncclSystemError).
std::vector<Interface> interfacesHere();

struct InterfaceChoice {
  std::vector<Interface> usable;     ///< never empty; the first is the one to take, the others come after it
  std::vector<std::string> reasons;  ///< one line per address: "eth0 10.0.0.5: chosen"
};

/// Pure. `settings.interfaces` is a list, separated by commas:
///   NAME       the interface of that name; where none has it, all whose names begin with it
///   =NAME      the interface of that name; = before the whole list says so for all of it
///   ADDRESS/N  addresses of that network
///   ^ before the whole list excludes what it names
/// Entries that come first are preferred; then what is neither loopback nor a bridge of containers; then
/// IPv4; then what is not link-local. Without a list, or with one that excludes, bridges of containers are
/// out. Interfaces that are down always are. Throws Error(ncclInvalidUsage), with every address and why it
/// was refused, when nothing is left.
InterfaceChoice chooseInterfaces(const std::vector<Interface>& all, const NetworkSettings& settings);

/// A link-local IPv6 address of another host, with the interface of this host that leads there: the first
/// usable one that has such addresses, too. Others unchanged.
NetAddress withScopeHere(NetAddress address, const NetworkSettings& settings);

}  // namespace tutti
