// tutti-run: starts the ranks of a program on this host. See --help.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

#include "runtime/core/cpu_affinity.h"
#include "runtime/core/environment.h"
#include "tools/run/cores.h"
#include "tools/run/cuda_program.h"
#include "tools/run/emulated_gpus.h"
#include "tools/run/find_program.h"
#include "tools/run/id_file.h"
#include "tools/run/loaded_nccl.h"
#include "tools/run/options.h"
#include "tools/run/process_setup.h"
#include "tools/run/supervisor.h"

namespace tutti::run {
namespace {

/// All ranks are on this machine, whatever hosts they are divided among: they reach each other by the
/// loopback interface, which is there also without a network and which no firewall guards. For the rendezvous
/// of this process, and inherited by the ranks.
void useLoopback() {
  const bool is_chosen = !readSettings(Environment::ofProcess()).network.interfaces.empty();
  if (!is_chosen) ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

void prepareEmulation(const std::string& program, int gpus) {
  constexpr int kNotRunnable = 126;
  const auto verdict = judgeForEmulation(program);
  if (!verdict.refusal.empty()) {
    throw NotRunnable(kNotRunnable, fmt::format("--emulate-gpus: '{}': {}", program, verdict.refusal));
  }
  for (const auto& warning : verdict.warnings) {
    fmt::print(stderr, "tutti-run: --emulate-gpus: '{}': {}\n", program, warning);
  }
  emulateGpus(gpus);
}

BindTo bindingOf(const Options& options) {
  if (options.bind) return *options.bind;
  const bool has_gpus = options.emulated_gpus || std::filesystem::exists("/dev/nvidiactl");
  return bindByDefault(readSettings(Environment::ofProcess()).device, has_gpus);
}

int launch(const Options& options) {
  LaunchPlan plan{.path = findProgram(options.command.front()),
                  .arguments = options.command,
                  .ranks = options.ranks,
                  .hosts = options.hosts,
                  .id_file = {},
                  .cores = {}};
  if (const BindTo to = bindingOf(options); to != BindTo::none) {
    const auto cores = allowedCpus();
    if (cores.empty() && options.bind) throw systemError("sched_getaffinity");
    if (!cores.empty()) plan.cores = coresOfRanks(to, options.ranks, cores);
    if (to == BindTo::core && static_cast<std::size_t>(options.ranks) > cores.size()) {
      fmt::print(stderr, "tutti-run: --bind: {} ranks share {} core{}\n", options.ranks, cores.size(),
                 cores.size() == 1 ? "" : "s");
    }
  }
  const ProcessSetup setup;  // before the library starts its thread
  if (options.port) ::setenv("TUTTI_BOOTSTRAP_PORT", std::to_string(*options.port).c_str(), 1);
  useLoopback();
  if (options.emulated_gpus) prepareEmulation(plan.path, *options.emulated_gpus);
  if (const auto warning = warningOfOtherNccl(plan.path); !warning.empty()) {
    fmt::print(stderr, "tutti-run: {}\n", warning);
  }
  auto id = openRendezvous();
  const IdFile id_file(id);
  ::explicit_bzero(&id, sizeof(id));
  plan.id_file = id_file.path();
  return Supervisor(options, setup).run(plan);
}

}  // namespace
}  // namespace tutti::run

int main(int argc, char** argv) {
  try {
    const auto parsed = tutti::run::parseOptions(argc, argv);
    return parsed.options ? tutti::run::launch(*parsed.options) : parsed.exit_status;
  } catch (const tutti::run::NotRunnable& error) {
    fmt::print(stderr, "tutti-run: {}\n", error.what());
    return error.exitStatus();
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti-run: {}\n", error.what());
    return 1;
  }
}
