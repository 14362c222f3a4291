#include "tools/doctor/gather.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

#include "tools/doctor/host_name.h"
#include "tutti/error.h"

namespace tutti::doctor {

std::string hostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

HostFacts gather() {
  HostFacts facts{.host = hostName()};
  try {
    facts.settings = readSettings([](const char* name) -> const char* { return std::getenv(name); });
  } catch (const Error& error) {
    facts.settings = readSettings([](const char*) -> const char* { return nullptr; });
    facts.settings_problem = error.what();
  }
  // Before libraries start threads: these fork.
  facts.isolation = gatherIsolation();
  facts.gpu = gatherGpu(facts.settings.device);
  facts.network = gatherNetwork(facts.settings.network);
  if (facts.settings.network_choice != NetworkChoice::sockets) facts.rdma = gatherRdma(facts.settings.rdma);
  facts.limits = gatherLimits(facts.settings.links);
  facts.pci = gatherPci();
  return facts;
}

}  // namespace tutti::doctor
