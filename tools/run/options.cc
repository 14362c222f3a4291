#include "tools/run/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>

#include "nccl.h"
#include "tools/run/emulated_gpus.h"

namespace tutti::run {
namespace {

constexpr int kBadUsage = 2;
constexpr double kMaxSeconds = 86400;

constexpr const char* kDescription =
    "Starts N ranks of PROGRAM on this host and joins their output.\n\n"
    "Everything after PROGRAM belongs to it. A name without a slash is looked for next to tutti-run first,\n"
    "then in PATH; when tutti-run's own directory is in PATH, the order of PATH decides.\n";

constexpr const char* kDetails =
    "Each rank finds in its environment:\n"
    "  TUTTI_RANK, TUTTI_WORLD_SIZE        its rank and the number of ranks\n"
    "  TUTTI_ID_FILE                       the file with the ncclUniqueId, readable by this user only\n"
    "  RANK, WORLD_SIZE                    the same numbers under other names\n"
    "  LOCAL_RANK, LOCAL_WORLD_SIZE        its number among the ranks of its host, and how many those are\n"
    "  NODE_RANK, GROUP_RANK               the number of its host: 0 without --hosts\n"
    "  NCCL_HOSTID                         with --hosts, the name of its host, such as node7-host1\n"
    "  NCCL_SOCKET_IFNAME                  lo, unless it is set: all ranks are on this machine\n"
    "TUTTI_BOOTSTRAP_PORT is for tutti-run's own rendezvous and is not passed on.\n\n"
    "Hosts: K names for this one, 1 to N of them. Each has a block of consecutive ranks; where N is no "
    "multiple\n"
    "of K, the first N mod K have one rank more. Ranks of different hosts use the network between them.\n\n"
    "Binding: --bind takes cores cache by cache and NUMA node by NUMA node, so that ranks that follow each "
    "other\n"
    "are near, and the second threads of cores last. --bind=cache and --bind=numa give each rank all cores "
    "of a\n"
    "last-level cache or NUMA node, in blocks of ranks. Only cores that tutti-run itself may use. Ranks in "
    "host\n"
    "memory (TUTTI_DEVICE=host, or a machine without GPUs) get --bind=numa unless something else is said, "
    "ranks on\n"
    "GPUs nothing; --bind=none leaves all to the scheduler.\n\n"
    "Emulated GPUs: G on each host, whether the machine has any or not; the CPU runs the kernels, slowly.\n"
    "PROGRAM must load the CUDA runtime as a shared library (nvcc -cudart shared) and hold PTX for compute\n"
    "capability 9.0 or lower. A rank takes device LOCAL_RANK mod G itself, as on a real machine. Tutti's "
    "own\n"
    "libnccl.so.2 is found before others.\n\n"
    "Input: every rank reads /dev/null.\n"
    "Output: whole lines, each with the rank before it, on the stream that the rank wrote to. A line ends "
    "with\n"
    "a newline or a carriage return; one longer than 1 MiB is split; a last one without an end gets a "
    "newline.\n"
    "Signals: SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 go to all ranks and what they started. "
    "All\n"
    "but the last two also begin the grace time; SIGINT after that kills at once.\n"
    "What a rank leaves running in its process group is killed when all ranks have ended.\n\n"
    "Exit status: 0 when all ranks succeeded, else that of the first that failed, 128 + n when signal n "
    "ended\n"
    "it. 1: tutti-run itself failed, 2: bad usage, 126: PROGRAM cannot be executed, 127: not found.\n";

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: tutti-run -n N [OPTIONS] [--] PROGRAM [ARGS...]\n";
  }
};

/// A CLI11 validator for numbers in [low, high]; unlike CLI::Range it refuses NaN and trailing text.
template <class T>
CLI::Validator within(T low, T high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    T value{};
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (parsed.ec == std::errc() && parsed.ptr == end && value >= low && value <= high) return {};
    return fmt::format("expected a number from {} to {}, got '{}'", low, high, text);
  };
  return CLI::Validator(check, fmt::format("{}..{}", low, high));
}

std::string versionText() {
  return fmt::format("tutti-run {} (NCCL API {}.{}.{})", TUTTI_VERSION, NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
}

std::chrono::milliseconds toMilliseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

/// What CLI11 left over: an unknown flag, "--" and the command, or the command.
std::vector<std::string> commandOf(std::vector<std::string> rest) {
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().starts_with('-')) {
    throw CLI::ExtrasError(fmt::format("unknown option {}", rest.front()), CLI::ExitCodes::ExtrasError);
  }
  if (rest.empty() || rest.front().empty()) throw CLI::RequiredError("PROGRAM");
  return rest;
}

}  // namespace

ParsedOptions parseOptions(int argc, char** argv) {
  Options options;
  int port = 0;
  int hosts = 1;
  int gpus = 0;
  double grace = 5;
  double kill_after = 2;
  bool no_prefix = false;

  CLI::App app{kDescription};
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kDetails);
  app.set_version_flag("--version", versionText());
  app.prefix_command();
  app.add_option("-n", options.ranks, "number of ranks")->required()->check(within(1, kMaxRanks));
  auto* hosts_option = app.add_option("--hosts", hosts, "divide the ranks among K hosts; see below");
  hosts_option->option_text("K")->check(within(1, kMaxRanks));
  auto* gpus_option =
      app.add_option("--emulate-gpus", gpus, "run CUDA programs on G emulated GPUs; see below");
  gpus_option->option_text("G")->check(within(0, kMaxEmulatedGpus));
  std::string bind;
  auto* bind_option = app.add_flag(
      "--bind{core}", bind, "bind each rank to a core of its own, neighbours near each other; see below");
  bind_option->check(CLI::IsMember({"core", "cache", "numa", "none"}));
  app.add_flag("--no-prefix", no_prefix, "pass lines on without their rank");
  auto* port_option = app.add_option("--port", port, "port of the rendezvous; default: any free one");
  port_option->check(within(1, 65535));
  app.add_option("--grace", grace, "seconds from a stop signal to SIGKILL")
      ->capture_default_str()
      ->check(within(0.0, kMaxSeconds));
  app.add_option("--kill-after", kill_after, "seconds from the first failure to SIGTERM for the others")
      ->capture_default_str()
      ->check(within(0.0, kMaxSeconds));

  try {
    app.parse(argc, argv);
    options.command = commandOf(app.remaining());
    if (hosts > options.ranks) {
      throw CLI::ValidationError("--hosts", fmt::format("{} hosts are more than {} rank{}", hosts,
                                                        options.ranks, options.ranks == 1 ? "" : "s"));
    }
  } catch (const CLI::Success& success) {  // --help and --version
    const int status = app.exit(success);
    if (std::cout.flush()) return {std::nullopt, status};
    fmt::print(stderr, "tutti-run: cannot write to standard output\n");
    return {std::nullopt, 1};
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "tutti-run: {}\nTry 'tutti-run --help'.\n", error.what());
    return {std::nullopt, kBadUsage};
  }
  options.prefix = !no_prefix;
  options.grace = toMilliseconds(grace);
  options.kill_after = toMilliseconds(kill_after);
  if (port_option->count() > 0) options.port = port;
  if (bind == "core") options.bind = BindTo::core;
  if (bind == "cache") options.bind = BindTo::cache;
  if (bind == "numa") options.bind = BindTo::numa;
  if (bind == "none") options.bind = BindTo::none;
  if (hosts_option->count() > 0) options.hosts = hosts;
  if (gpus_option->count() > 0) options.emulated_gpus = gpus;
  return {options, 0};
}

}  // namespace tutti::run
