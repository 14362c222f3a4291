// RDMA devices and ports.
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/host/judge.h"

namespace tutti::doctor {
namespace {

constexpr const char* kArea = "RDMA";
constexpr int kMostRdmaMtu = 4096;
constexpr const char* kPortRemedy =
    "see that this user may open the device, that its interface has an IP address, and that "
    "NCCL_IB_GID_INDEX, "
    "NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE and NCCL_IB_PKEY leave it something";
constexpr int kRoceOverhead = 100;  ///< headers of RoCE v2 over IPv6, and some

/// Nothing to use: what that means depends on what was asked for, and on what there is.
Finding judgeNone(const RdmaFacts& facts, const Settings& settings) {
  const bool is_demanded = settings.network_choice == NetworkChoice::rdma;
  const auto say = [&](Level level, const std::string& seen, const std::string& todo) -> Finding {
    if (!is_demanded) return {level, kArea, "devices", seen, todo};
    return {Level::failure, kArea, "devices", seen + "; NCCL_NET=IB allows nothing else",
            todo + (todo.empty() ? "" : ", or ") + "unset NCCL_NET, for TCP"};
  };
  if (!facts.is_built) {
    return say(facts.ports.empty() ? Level::note : Level::warning,
               fmt::format("{}, but RDMA is not built in: other hosts are reached over TCP",
                           facts.ports.empty() ? "none" : "there are some"),
               "build it where libibverbs-dev is installed (TUTTI_VERBS=ON)");
  }
  if (facts.ports.empty()) return say(Level::note, "none: other hosts are reached over TCP", "");
  if (!facts.has_device_files) {
    return say(Level::failure, "there are some, but no /dev/infiniband/uverbs*: programs cannot open them",
               "load ib_uverbs (modprobe ib_uverbs); containers: --device /dev/infiniband");
  }
  constexpr const char* kElse = "; until then other hosts are reached over TCP";
  if (std::ranges::none_of(facts.ports, &RdmaPort::is_wanted)) {
    return say(Level::failure, fmt::format("NCCL_IB_HCA={} leaves out all ports", settings.rdma.hca),
               std::string("name one of the ports below in NCCL_IB_HCA, or unset it") + kElse);
  }
  const bool ports_say = std::ranges::any_of(facts.ports, [&](const RdmaPort& port) {
    return !port.why_not.empty() && port.why_not != facts.why_none;
  });
  return say(
      Level::failure,
      fmt::format("none can be used: {}", ports_say ? "see the reasons below, port by port" : facts.why_none),
      (ports_say ? "correct one of them: " : "correct that: ") + std::string(kPortRemedy) + kElse);
}

Finding judgePort(const RdmaPort& port, const RdmaFacts& facts, const RdmaSettings& settings) {
  const std::string check = fmt::format("port {}", port.name);
  const std::string below = port.interface.empty() ? "" : fmt::format(" on {}", port.interface);
  const std::string what =
      fmt::format("{}{}, {}", port.is_ethernet ? "Ethernet" : "InfiniBand", below, port.rate);
  if (!port.is_wanted) {
    return {Level::note, kArea, check,
            fmt::format("{}: {}, left out by NCCL_IB_HCA={}", what, port.state, settings.hca)};
  }
  if (port.state != "ACTIVE") {
    return {Level::warning, kArea, check, fmt::format("{}: {}", what, port.state),
            port.is_ethernet       ? fmt::format("check the cable; ip link set {} up",
                                           port.interface.empty() ? "INTERFACE" : port.interface)
            : port.state == "INIT" ? "start a subnet manager (opensm), or ask whoever runs the fabric"
                                   : "check the cable"};
  }
  const bool is_used =
      std::ranges::find(facts.usable, port.name, &UsableRdmaPort::name) != facts.usable.end();
  if (!is_used && facts.is_built && facts.has_device_files) {
    const bool is_told = port.why_not.empty() || port.why_not == facts.why_none;
    const std::string seen =
        fmt::format("{}: ACTIVE, but not usable: {}", what, is_told ? "see above" : port.why_not);
    // Where none is used, the failure says what to do, once.
    if (facts.usable.empty()) return {Level::note, kArea, check, seen};
    return {Level::warning, kArea, check, seen, kPortRemedy};
  }
  return {Level::ok, kArea, check, what + ": ACTIVE"};
}

Finding judgeGid(const UsableRdmaPort& port, const RdmaSettings& settings) {
  const std::string check = fmt::format("GID of {}", port.name);
  const std::string seen = fmt::format("{}, of {}", port.gid, port.gid_count);
  if (port.is_roce_v1) {
    return {Level::warning, kArea, check, seen + ": no routers are passed by RoCE v1",
            settings.gid_index >= 0 ? "unset NCCL_IB_GID_INDEX: it names an entry of RoCE v1"
                                    : "give the interface an IP address, and the device RoCE v2"};
  }
  if (port.is_link_local) {
    return {
        Level::warning, kArea, check, seen + ": a link-local address, good on one network only",
        settings.gid_index >= 0 ? "unset NCCL_IB_GID_INDEX: it names that entry"
        : settings.address_family.empty() && !settings.address_range
            ? "give the interface an IP address"
            : "give the interface an IP address that NCCL_IB_ADDR_FAMILY and NCCL_IB_ADDR_RANGE allow, or "
              "unset them"};
  }
  return {Level::ok, kArea, check, seen};
}

Finding judgeMtu(const UsableRdmaPort& usable, const RdmaPort& port) {
  const std::string check = fmt::format("MTU of {}", usable.name);
  const std::string seen = port.interface.empty()
                               ? fmt::format("{}", usable.mtu)
                               : fmt::format("{} ({}: {})", usable.mtu, port.interface, port.interface_mtu);
  if (usable.mtu >= kMostRdmaMtu || !port.is_ethernet) return {Level::ok, kArea, check, seen};
  if (port.interface_mtu < kMostRdmaMtu + kRoceOverhead) {
    return {Level::warning, kArea, check, seen + ": packets are small, so devices and switches do more work",
            fmt::format("ip link set {} mtu 9000, on all hosts and switches",
                        port.interface.empty() ? "INTERFACE" : port.interface)};
  }
  return {Level::note, kArea, check, seen + ": the interface would allow 4096",
          "see the device's own limit (ibv_devinfo: max_mtu)"};
}

}  // namespace

Findings judgeRdma(const RdmaFacts& facts, const Settings& settings) {
  if (settings.network_choice == NetworkChoice::sockets) {
    return {{Level::note, kArea, "devices", "not looked at: NCCL_NET or NCCL_IB_DISABLE says TCP",
             "unset both where RDMA should be used"}};
  }
  Findings findings;
  if (facts.usable.empty()) findings.push_back(judgeNone(facts, settings));
  bool has_roce = false;
  for (const RdmaPort& port : facts.ports) {
    findings.push_back(judgePort(port, facts, settings.rdma));
    const auto usable = std::ranges::find(facts.usable, port.name, &UsableRdmaPort::name);
    if (usable == facts.usable.end()) continue;
    has_roce = has_roce || port.is_ethernet;
    findings.push_back(judgeGid(*usable, settings.rdma));
    findings.push_back(judgeMtu(*usable, port));
  }
  if (has_roce) {
    findings.push_back(
        {Level::note, kArea, "UDP port 4791",
         "RoCE v2 travels by it; whether firewalls let it through cannot be seen from one host",
         "try it: `tutti-doctor --listen` on another host, `tutti-doctor --peer` here"});
  }
  return findings;
}

}  // namespace tutti::doctor
