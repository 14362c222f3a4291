// The ports that links would be made over, as transports/verbs finds them.
#include <algorithm>
#include <cstdlib>

#include "runtime/core/hca_rule.h"
#include "tools/doctor/host/gather.h"
#include "transports/verbs/device.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

UsableRdmaPort describe(const VerbsPort& port) {
  constexpr int kSmallestMtu = 128;  // IBV_MTU_256 is 1
  UsableRdmaPort usable{.name = port.name(), .mtu = kSmallestMtu << static_cast<int>(port.mtu)};
  usable.gid_count = static_cast<int>(port.gids.size());
  // With a peer that has just such addresses. Most have IPv4, and then the longer prefix in common by it.
  std::vector<Gid> gids = port.gids;
  std::stable_partition(gids.begin(), gids.end(), isIpv4);
  const auto pair = chooseGids(gids, gids);
  if (!pair) return usable;
  usable.gid = toText(pair->mine);
  usable.is_link_local = port.is_ethernet && isLinkLocal(pair->mine);
  usable.is_roce_v1 = pair->mine.type == GidType::roce_v1;
  return usable;
}

}  // namespace

void findUsablePorts(const RdmaSettings& settings, RdmaFacts& facts) {
  try {
    const HcaRule rule(settings.hca);
    const VerbsPorts found = findVerbsPorts(settings);
    for (const VerbsPort& port : found.ports) facts.usable.push_back(describe(port));
    facts.why_none = found.why_not;
    for (RdmaPort& port : facts.ports) {
      const std::size_t colon = port.name.rfind(':');
      port.is_wanted = rule.allows(port.name.substr(0, colon), std::atoi(port.name.c_str() + colon + 1));
      const bool is_used =
          std::ranges::find(facts.usable, port.name, &UsableRdmaPort::name) != facts.usable.end();
      if (!port.is_wanted || is_used) continue;
      // Reasons are given where there is no port at all: so this one is asked for alone.
      RdmaSettings alone = settings;
      alone.hca = "=" + port.name;
      port.why_not = findVerbsPorts(alone).why_not;
    }
  } catch (const Error& error) {
    facts.why_none = error.what();
  }
}

}  // namespace tutti::doctor
