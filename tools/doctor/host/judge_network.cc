// Interfaces, ports and firewalls.
#include <fmt/format.h>

#include <algorithm>

#include "tools/doctor/host/judge.h"
#include "transports/socket_address.h"

namespace tutti::doctor {
namespace {

constexpr const char* kArea = "Network";
constexpr int kFastMegabits = 10000;
constexpr int kJumboMtu = 9000;

const NetworkDevice& deviceOf(const NetworkFacts& facts, const std::string& name) {
  static const NetworkDevice unknown;
  const auto found = facts.devices.find(name);
  return found == facts.devices.end() ? unknown : found->second;
}

std::string speedText(int megabits) {
  return megabits < 0 ? "speed unknown" : fmt::format("{:g} Gbit/s", megabits / 1000.0);
}

Finding judgeChoice(const Interface& chosen, const NetworkFacts& facts, const NetworkSettings& settings) {
  const std::string how = settings.interfaces.empty()
                              ? "NCCL_SOCKET_IFNAME is not set"
                              : fmt::format("by NCCL_SOCKET_IFNAME={}", settings.interfaces);
  const std::string seen =
      fmt::format("{} {} is chosen ({}; {} usable address{})", chosen.name, hostText(chosen.address), how,
                  facts.usable.size(), facts.usable.size() == 1 ? "" : "es");
  if (isLoopback(chosen.address)) {
    return {Level::note, kArea, "interface", seen,
            settings.interfaces.empty()
                ? "jobs on this host alone work. For more: bring a network interface up"
                : "jobs on this host alone work. For more: name another interface in NCCL_SOCKET_IFNAME"};
  }
  if (isLinkLocal(chosen.address)) {
    return {Level::warning, kArea, "interface", seen + ", which is good on one cable or switch only",
            "give the interface an address (ip address add), the same network on all hosts"};
  }
  return {Level::ok, kArea, "interface", seen};
}

/// The device of the chosen address.
Findings judgeDevice(const Interface& chosen, const NetworkFacts& facts) {
  const NetworkDevice& device = deviceOf(facts, chosen.name);
  const std::string check = fmt::format("link of {}", chosen.name);
  if (!device.has_carrier) {
    return {{Level::failure, kArea, check, "no carrier: no cable, or nothing at its other end",
             fmt::format("check cable and switch, or choose another interface (NCCL_SOCKET_IFNAME=^{})",
                         chosen.name)}};
  }
  Findings findings{
      {Level::ok, kArea, check, fmt::format("up, {}, MTU {}", speedText(device.megabits), device.mtu)}};
  const auto faster = std::ranges::find_if(facts.usable, [&](const Interface& other) {
    return other.name != chosen.name && deviceOf(facts, other.name).megabits > std::max(0, device.megabits);
  });
  if (device.megabits >= 0 && faster != facts.usable.end()) {
    findings.push_back({Level::warning, kArea, "fastest interface",
                        fmt::format("{} has {}, the chosen {} only {}", faster->name,
                                    speedText(deviceOf(facts, faster->name).megabits), chosen.name,
                                    speedText(device.megabits)),
                        fmt::format("set NCCL_SOCKET_IFNAME={} on all hosts", faster->name)});
  }
  if (device.megabits >= kFastMegabits && device.mtu < kJumboMtu) {
    findings.push_back(
        {Level::note, kArea, fmt::format("MTU of {}", chosen.name),
         fmt::format("{} at {}; large frames take less of the processor", device.mtu,
                     speedText(device.megabits)),
         fmt::format("if all switches on the way allow it: ip link set {} mtu {}, on all hosts", chosen.name,
                     kJumboMtu)});
  }
  return findings;
}

Finding judgeRoute(const Interface& chosen, const NetworkFacts& facts) {
  if (facts.default_route.empty()) {
    return {Level::note, kArea, "default route", "none: only hosts on the networks of this one are reached",
            "add a route (ip route add) if other hosts of a job are elsewhere"};
  }
  if (facts.default_route != chosen.name) {
    return {Level::note, kArea, "default route",
            fmt::format("leads over {}, not over {}", facts.default_route, chosen.name),
            fmt::format("right where all hosts of a job are on the network of {}; `tutti-doctor --peer` "
                        "shows the way that is taken",
                        chosen.name)};
  }
  return {Level::ok, kArea, "default route", fmt::format("leads over {}", facts.default_route)};
}

Finding judgePorts(const NetworkFacts& facts, const NetworkSettings& settings) {
  const std::string range = settings.first_port == 0 ? "any free port (TUTTI_PORT_RANGE is not set)"
                                                     : fmt::format("{}-{} (TUTTI_PORT_RANGE)",
                                                                   settings.first_port, settings.last_port);
  if (!facts.may_have_firewall)
    return {Level::ok, kArea, "TCP ports", fmt::format("ranks listen on {}", range)};
  return {
      Level::note, kArea, "TCP ports",
      fmt::format("ranks listen on {}; a packet filter is loaded here, and may keep peers out", range),
      settings.first_port == 0
          ? "set TUTTI_PORT_RANGE=20000-20100 and open these ports between the hosts; `tutti-doctor --peer` "
            "tries it"
          : "open these ports between the hosts; `tutti-doctor --peer` tries it"};
}

}  // namespace

Findings judgeNetwork(const NetworkFacts& facts, const NetworkSettings& settings) {
  if (facts.usable.empty()) {
    return {
        {Level::failure, kArea, "interface", facts.why_none,
         "correct NCCL_SOCKET_IFNAME or NCCL_SOCKET_FAMILY, or bring an interface up (ip link set NAME up)"}};
  }
  const Interface& chosen = facts.usable.front();
  Findings findings{judgeChoice(chosen, facts, settings)};
  if (!isLoopback(chosen.address)) {
    for (Finding& finding : judgeDevice(chosen, facts)) findings.push_back(std::move(finding));
    findings.push_back(judgeRoute(chosen, facts));
  }
  findings.push_back(judgePorts(facts, settings));
  return findings;
}

}  // namespace tutti::doctor
