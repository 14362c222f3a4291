#include "tools/doctor/host/gather.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "runtime/bootstrap/id_source.h"
#include "runtime/core/environment.h"
#include "runtime/log.h"
#include "tools/doctor/system.h"
#include "tutti/error.h"

namespace tutti::doctor {

namespace {

/// The library refuses the first wrong variable; a person wants to hear of all.
void readEnvironment(HostFacts& facts) {
  Environment environment;
  try {
    environment = Environment::ofProcess();
  } catch (const Error& error) {
    facts.settings_problems.emplace_back(error.what());
    environment.addVariables(environ);
  }
  facts.settings = readSettings(environment, &facts.settings_problems);
  facts.settings_warnings = environment.warnings();
  std::ranges::move(environment.unknown(), std::back_inserter(facts.settings.ignored));
}

/// Whether ranks could join by NCCL_COMM_ID, and by the secret; empty: they could.
std::string joiningProblem(const NetworkSettings& settings) {
  if (settings.comm_id.empty() && settings.secret_file.empty()) return "";
  // A program may have another place to meet than NCCL_COMM_ID; the secret is the same.
  const std::string where = settings.comm_id.empty() ? "127.0.0.1:1" : settings.comm_id;
  Log log({});
  try {
    agreedUniqueId(where, "NCCL_COMM_ID", settings, log);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

HostFacts gather() {
  HostFacts facts{.host = hostName()};
  readEnvironment(facts);
  facts.joining_problem = joiningProblem(facts.settings.network);
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
