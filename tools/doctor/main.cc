// tutti-doctor: what stands in the way of a job on this host, or between two. See --help.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

#include "tools/doctor/environment_report.h"
#include "tools/doctor/host/gather.h"
#include "tools/doctor/host/judge.h"
#include "tools/doctor/options.h"
#include "tools/doctor/peer/judge_peer.h"
#include "tools/doctor/peer/peer_check.h"
#include "tools/doctor/peer/peer_json.h"
#include "tools/doctor/system.h"
#include "tools/findings/report.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

constexpr int kFailed = 2;
constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

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

/// Fails where a job would be refused.
int showEnvironment(const Options& options) {
  const auto reports = reportEnvironment(Environment::ofProcess());
  fmt::print("{}", options.json ? toJson(reports).dump(2, ' ', false, kReplace) + "\n" : toText(reports));
  return std::ranges::any_of(reports, &VariableReport::is_refused) ? kFailed : 0;
}

void announce(const std::string& line, const Options& options) {
  // One document is all that standard output may hold then.
  std::FILE* const out = options.json ? stderr : stdout;
  const auto patience = std::chrono::duration_cast<std::chrono::seconds>(options.patience);
  fmt::print(out, "On the other host, within {} s:\n  {}\n\n", patience.count(), line);
  std::fflush(out);
}

PeerResult meetPeer(const Options& options) {
  try {
    if (options.task == Task::peer) return callPeer(options);
    return listenForPeer(options, [&](const std::string& line) { announce(line, options); });
  } catch (const Error& error) {
    return {.findings = {judgeNoStart(error.what())}};
  }
}

int checkPeer(const Options& options) {
  const PeerResult result = meetPeer(options);
  if (options.json) {
    auto json = toJson(hostName(), "peer", result.findings);
    if (result.have_met) json["measured"] = toJson(result.facts);
    fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return exitStatus(result.findings);
  }
  const PeerSide& caller = result.facts.caller;
  const PeerSide& listener = result.facts.listener;
  const std::string title = result.have_met
                                ? fmt::format("tutti-doctor {}: {} ({}) calls {} ({})", TUTTI_VERSION,
                                              caller.host, caller.address, listener.host, listener.address)
                                : fmt::format("tutti-doctor {}: {}", TUTTI_VERSION, hostName());
  fmt::print("{}", toText(title, result.findings));
  return exitStatus(result.findings);
}

int carryOut(const Options& options) {
  if (options.task == Task::environment) return showEnvironment(options);
  return options.task == Task::host ? checkHost(options) : checkPeer(options);
}

}  // namespace
}  // namespace tutti::doctor

int main(int argc, char** argv) {
  using namespace tutti::doctor;
  try {
    const auto [options, exit_status] = parseOptions(argc, argv);
    if (!options) return exit_status;
    const int found = carryOut(*options);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return found;
    fmt::print(stderr, "tutti-doctor: the report cannot be written: {}\n", std::strerror(errno));
    return kFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti-doctor: {}\n", error.what());
    return kFailed;
  }
}
