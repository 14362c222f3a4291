// tutti-doctor: what stands in the way of a job on this host, or between two. See --help.
#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>

#include "tools/doctor/gather.h"
#include "tools/doctor/judge.h"
#include "tools/doctor/options.h"
#include "tools/doctor/report.h"

namespace tutti::doctor {
namespace {

int checkHost(const Options& options) {
  const HostFacts facts = gather();
  const Findings findings = judge(facts);
  if (options.json) {
    fmt::print("{}\n", toJson(facts.host, "host", findings).dump(2));
  } else {
    fmt::print("{}", toText(fmt::format("tutti-doctor {}: {}", TUTTI_VERSION, facts.host), findings));
  }
  return exitStatus(findings);
}

}  // namespace
}  // namespace tutti::doctor

int main(int argc, char** argv) {
  constexpr int kFailed = 2;
  try {
    const auto parsed = tutti::doctor::parseOptions(argc, argv);
    return parsed.options ? tutti::doctor::checkHost(*parsed.options) : parsed.exit_status;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti-doctor: {}\n", error.what());
    return kFailed;
  }
}
