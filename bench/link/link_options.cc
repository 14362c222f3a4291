#include "bench/link/link_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "bench/command_line.h"

namespace tutti::perf {
namespace {

constexpr std::size_t kMostIterations = 1000;
constexpr std::size_t kFewestIterations = 20;
constexpr std::size_t kBytesPerSize = std::size_t{256} << 20;
constexpr int kMany = std::numeric_limits<int>::max();

void addLinkFlags(CLI::App& app, LinkOptions& options) {
  const std::string group = "Link";
  addText(app, "--transport", "NAME",
          "auto, inproc, shm, tcp, verbs or cuda_ipc: refused where it is not used [auto]",
          [&](const std::string& text) { options.medium = parseMedium(text); })
      ->group(group);
  app.add_option("--ib-dev", options.rdma_devices,
                 "RDMA device of rank 0, and of rank 1 after a comma, as in NCCL_IB_HCA; for two ports of "
                 "one machine")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("DEVICE")
      ->group(group);
  addDevice(app, options.device)->group(group);
}

void addMeasureFlags(CLI::App& app, LinkOptions& options) {
  const std::string group = "Measurement";
  addSize(app, "-b,--minbytes", options.sizes.min, "first size, such as 8, 64K, 1.5M [8]")->group(group);
  addSize(app, "-e,--maxbytes", options.sizes.max, "last size [64M]")->group(group);
  app.add_option("-f,--stepfactor", options.sizes.factor, "multiplies from size to size [2]")
      ->check(CLI::Range(2, kMany))
      ->type_name("N")
      ->group(group);
  app.add_option("-n,--iters", options.iterations,
                 "timed messages of each size [256 MiB of them, at least 20, at most 1000]")
      ->check(CLI::Range(1, kMany))
      ->type_name("N")
      ->group(group);
  app.add_option("-w,--warmup_iters", options.warmup, "untimed messages before each size [5]")
      ->check(CLI::Range(0, kMany))
      ->type_name("N")
      ->group(group);
  addText(app, "-t,--test", "TEST", "bw, lat or both [both]", [&](const std::string& text) {
    if (text != "bw" && text != "lat" && text != "both")
      throw std::invalid_argument(text + " is not a test; there are: bw lat both");
    options.bandwidth = text != "lat";
    options.latency = text != "bw";
  })->group(group);
  app.add_option("-R,--local_register", options.registered,
                 "buffers of ncclMemAlloc are registered with the communicator [1]")
      ->type_name("0|1")
      ->group(group);
  app.add_option("-T,--timeout", options.timeout_s, "seconds per size and test; 0 = no limit [0]")
      ->check(CLI::Range(0, kMany))
      ->type_name("N")
      ->group(group);
  addText(app, "--corrupt", "INDEX", "", [&](const std::string& text) {
    options.corrupt = parseSize(text);
  })->group("");
}

void addReportFlags(CLI::App& app, LinkOptions& options) {
  const std::string group = "Report";
  app.add_flag("--report_gbits", options.gbits, "bandwidth in Gbit/s, decimal, instead of MiB/s")
      ->group(group);
  addJsonPath(app, "-J,--json,--output_file", options.json_path)->group(group);
}

void validate(const LinkOptions& options) {
  if (options.sizes.min == 0) throw CLI::ValidationError("-b", "a message has at least one byte");
  try {
    sizesOf(options.sizes);
  } catch (const std::invalid_argument& error) {
    throw CLI::ValidationError("sizes", error.what());
  }
  const auto& devices = options.rdma_devices;
  if (devices.size() > 2)
    throw CLI::ValidationError("--ib-dev", "expected one name, or two with a comma between them");
  if (!devices.empty() && options.medium != Medium::verbs && options.medium != Medium::automatic) {
    throw CLI::ValidationError(
        "--ib-dev",
        fmt::format("names RDMA devices, which --transport {} does not use", nameOf(options.medium)));
  }
  const bool on_gpus = options.medium == Medium::cuda_ipc;
  if (on_gpus && options.device == device::Choice::host)
    throw CLI::ValidationError("--transport", "cuda_ipc joins GPUs, not host memory (--device host)");
  if ((options.medium == Medium::shm || options.medium == Medium::inproc) &&
      options.device == device::Choice::cuda)
    throw CLI::ValidationError("--transport", "shm and inproc join host memory, not GPUs (--device cuda)");
}

}  // namespace

std::size_t LinkOptions::iterationsFor(std::size_t bytes) const {
  if (iterations > 0) return static_cast<std::size_t>(iterations);
  return std::clamp(kBytesPerSize / bytes, kFewestIterations, kMostIterations);
}

std::array<std::uint64_t, kSharedFlags.size()> sharedValues(const LinkOptions& options) {
  return {options.sizes.min,
          options.sizes.max,
          options.sizes.factor,
          static_cast<std::uint64_t>(options.iterations),
          static_cast<std::uint64_t>(options.warmup),
          options.registered ? 1U : 0U,
          options.bandwidth ? 1U : 0U,
          options.latency ? 1U : 0U};
}

ParsedLinkOptions parseLinkOptions(int argc, char** argv, bool speaks) {
  LinkOptions options;
  options.arguments.assign(argv, argv + argc);
  CLI::App app(
      "Latency and bandwidth of one link: messages from rank 0 to rank 1, with the columns of perftest.",
      "link_perf");
  app.footer(
      "Examples:\n  link_perf --transport shm\n  link_perf --transport verbs --ib-dev mlx5_0,mlx5_1 -b 1M -e "
      "1M\n"
      "  RANK=0 WORLD_SIZE=2 MASTER_ADDR=... link_perf        (on each of two hosts; see docs/hosts.md)\n\n"
      "Exit status: 0, 1 (wrong data, failed), 2 (bad arguments, or another transport than asked for).");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  addLinkFlags(app, options);
  addMeasureFlags(app, options);
  addReportFlags(app, options);
  if (const auto status = parseCommandLine(
          app, argc, argv, [&options] { validate(options); }, speaks))
    return {.options = std::nullopt, .exit_status = *status};
  if (options.medium == Medium::cuda_ipc) options.device = device::Choice::cuda;
  if (options.medium == Medium::shm || options.medium == Medium::inproc)
    options.device = device::Choice::host;
  return {.options = std::move(options), .exit_status = 0};
}

}  // namespace tutti::perf
