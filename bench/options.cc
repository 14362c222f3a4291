#include "bench/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>

#include "bench/command_line.h"
#include "bench/problem.h"
#include "bench/traffic.h"

namespace tutti::perf {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();

template <class Value>
struct Named {
  const char* name;
  Value value;
};

// In the order of nccl-tests.
constexpr std::array kTypes{
    Named<ncclDataType_t>{"int8", ncclInt8},         Named<ncclDataType_t>{"uint8", ncclUint8},
    Named<ncclDataType_t>{"int32", ncclInt32},       Named<ncclDataType_t>{"uint32", ncclUint32},
    Named<ncclDataType_t>{"int64", ncclInt64},       Named<ncclDataType_t>{"uint64", ncclUint64},
    Named<ncclDataType_t>{"half", ncclFloat16},      Named<ncclDataType_t>{"float", ncclFloat32},
    Named<ncclDataType_t>{"double", ncclFloat64},    Named<ncclDataType_t>{"bfloat16", ncclBfloat16},
    Named<ncclDataType_t>{"f8e4m3", ncclFloat8e4m3}, Named<ncclDataType_t>{"f8e5m2", ncclFloat8e5m2},
};

constexpr std::array kOps{
    Named<ncclRedOp_t>{"sum", ncclSum}, Named<ncclRedOp_t>{"prod", ncclProd},
    Named<ncclRedOp_t>{"max", ncclMax}, Named<ncclRedOp_t>{"min", ncclMin},
    Named<ncclRedOp_t>{"avg", ncclAvg}, Named<ncclRedOp_t>{"mulsum", kMulSum},
};

template <class Table>
std::string namesIn(const Table& table) {
  std::string names;
  for (const auto& entry : table) names += std::string(entry.name) + " ";
  return names + "all";
}

/// The values that `text` names; `what` is for the error.
template <class Value, std::size_t kSize>
std::vector<Value> select(const std::array<Named<Value>, kSize>& table, const char* flag, const char* what,
                          const std::string& text) {
  std::vector<Value> values;
  for (const auto& entry : table) {
    if (text == entry.name || text == "all") values.push_back(entry.value);
  }
  if (!values.empty()) return values;
  throw CLI::ValidationError(flag, text + " is not a " + what + "; there are: " + namesIn(table));
}

template <class Table, class Value>
std::string nameIn(const Table& table, Value value) {
  const auto* entry =
      std::find_if(table.begin(), table.end(), [&](const auto& named) { return named.value == value; });
  return entry == table.end() ? std::to_string(value) : entry->name;
}

CLI::Option* addInt(CLI::App& app, const std::string& flags, int& target, int min, int max,
                    const std::string& help) {
  return app.add_option(flags, target, help)
      ->check(CLI::Range(min, max))
      ->type_name("N")
      ->capture_default_str();
}

CLI::Option* addSwitch(CLI::App& app, const std::string& flags, bool& target, const std::string& help) {
  const std::string name = flags.substr(0, flags.find(','));
  const auto read = [name, &target](const int& value) {
    if (value != 0 && value != 1) throw CLI::ValidationError(name, "0 or 1, not " + std::to_string(value));
    target = value == 1;
  };
  return app.add_option_function<int>(flags, read, help)->type_name("0|1");
}

/// A flag of nccl-tests that has nothing to act on here: whoever gives it is told why.
void addInert(CLI::App& app, const std::string& flags, int min, int max, const std::string& help,
              const std::string& why, Options& options) {
  const std::string name = flags.substr(0, flags.find(','));
  const auto note = [name, why, &options](const int& value) {
    options.notes.push_back(fmt::format("{} {} has no effect: {}", name, value, why));
  };
  app.add_option_function<int>(flags, note, fmt::format("{}: {}", help, why))
      ->check(CLI::Range(min, max))
      ->type_name("N")
      ->group("Accepted without effect");
}

void addSizeFlags(CLI::App& app, Options& options) {
  const std::string group = "Sizes";
  addSize(app, "-b,--minbytes", options.sizes.min, "first size, such as 8, 64K, 1.5M, 2G [32M]")
      ->group(group);
  addSize(app, "-e,--maxbytes", options.sizes.max, "last size; cut to what free memory allows [32M]")
      ->group(group);
  addSize(app, "-i,--stepbytes", options.sizes.step, "added from size to size [1M]")->group(group);
  app.add_option("-f,--stepfactor", options.sizes.factor,
                 "multiplies from size to size; wins over -i; 0, 1 = off. After size 0 comes 8 [1]")
      ->check(CLI::Range(0, kMany))
      ->type_name("N")
      ->group(group);
}

void addOperationFlags(CLI::App& app, Options& options) {
  const std::string group = "Operation";
  app.add_option_function<std::string>(
         "-o,--op", [&](const std::string& text) { options.ops = select(kOps, "-o", "reduction", text); },
         "reduction: " + namesIn(kOps) + " [sum]")
      ->group(group)
      ->type_name("OP");
  app.add_option_function<std::string>(
         "-d,--datatype",
         [&](const std::string& text) { options.types = select(kTypes, "-d", "data type", text); },
         "data type: " + namesIn(kTypes) + " [float]")
      ->group(group)
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         "-r,--root",
         [&](const std::string& text) {
           if (text == "all" || text == "-1") {
             options.root = Options::kAllRoots;
           } else if (!CLI::detail::lexical_cast(text, options.root) || options.root < 0) {
             throw CLI::ValidationError("-r", "a rank or \"all\", not " + text);
           }
         },
         "root rank, or all: every rank in turn (broadcast, reduce, gather, scatter) [0]")
      ->group(group)
      ->type_name("ROOT");
}

void addMeasureFlags(CLI::App& app, Options& options) {
  const std::string group = "Measurement";
  addInt(app, "-n,--iters", options.iterations, 1, kMany, "timed iterations")->group(group);
  addInt(app, "-m,--agg_iters", options.aggregate, 1, kMany,
         "operations per iteration, in one group; times are per operation")
      ->group(group);
  addInt(app, "-w,--warmup_iters", options.warmup, 0, kMany, "untimed iterations before each size")
      ->group(group);
  addInt(app, "-N,--run_cycles", options.cycles, 0, kMany, "repeats of the whole sweep; 0 = until SIGINT")
      ->group(group);
  addInt(app, "-c,--check", options.checks, 0, kMany,
         "checked iterations, after the timed ones; 0 = no check")
      ->group(group);
  app.add_option_function<int>(
         "-R,--local_register",
         [&options](const int& value) {
           options.registered = value != 0;
           if (value == 2)
             options.notes.emplace_back(
                 "-R 2 does as -R 1: the library has no windows of symmetric memory, so buffers are "
                 "registered");
         },
         "1: buffers of ncclMemAlloc, registered with the communicator; 2: the same [0]")
      ->check(CLI::Range(0, 2))
      ->type_name("N")
      ->group(group);
  addInt(app, "-u,--unalign", options.unaligned, 0, 1 << 20, "shift buffers by this many elements")
      ->group(group);
  app.add_option("-a,--average", options.average, "time over ranks: 0 rank 0, 1 mean, 2 min, 3 max [1]")
      ->transform(CLI::IsMember({0, 1, 2, 3}))
      ->type_name("N")
      ->group(group);
  app.add_option(
         "-z,--blocking", options.blocking,
         "wait after 1, 2: each operation, 3: each iteration; 1, 3: and then for all ranks, which is not "
         "timed [0]")
      ->transform(CLI::IsMember({0, 1, 2, 3}))
      ->type_name("N")
      ->group(group);
  addInt(app, "-G,--cudagraph", options.graph, 0, kMany,
         "record the operations of all iterations in a CUDA graph, replay it N times and time that; 0 = off")
      ->group(group);
  addSwitch(app, "-y,--stream_null", options.null_stream, "use the NULL stream [0]")->group(group);
  addInt(app, "-T,--timeout", options.timeout_s, 0, kMany, "seconds per row of the table; 0 = no limit")
      ->group(group);
}

void addReportFlags(CLI::App& app, Options& options) {
  const std::string group = "Report";
  addSwitch(app, "-C,--report_cputime", options.cpu_time,
            "time until the operations are queued, on host memory CPU time of the calling thread [0]")
      ->group(group);
  addSwitch(app, "-S,--report_timestamps", options.timestamps, "time of day of each row [0]")->group(group);
  addSwitch(app, "-I,--per_iter_timing", options.per_iteration, "time each iteration: min, max, p99, cv% [0]")
      ->group(group);
  addInt(app, "-K,--per_iter_skip", options.skip, 0, kMany, "leave the first K iterations out of these")
      ->group(group);
  addSwitch(app, "-M,--memory_report", options.memory_report, "memory use of rank 0's process [0]")
      ->group(group);
  addJsonPath(app, "-J,--output_file", options.json_path)->group(group);
}

void addRankFlags(CLI::App& app, Options& options) {
  const std::string group = "Ranks";
  addInt(app, "--launch", options.launch, 1, 4096, "start N processes on this host, with tutti-run")
      ->group(group)
      ->default_str("");
  addDevice(app, options.device)->group(group);
  addInt(app, "-t,--nthreads", options.threads, 1, 4096,
         "threads of this process; ranks in all = processes x threads x GPUs per thread")
      ->group(group);
  addInt(app, "-g,--ngpus", options.gpus, 1, 4096, "GPUs (ranks) of each thread, served in group calls")
      ->group(group);
  app.add_option_function<std::string>(
         "--corrupt",
         [&](const std::string& text) {
           const auto colon = text.find(':');
           Corruption corruption;
           if (colon == std::string::npos ||
               !CLI::detail::lexical_cast(text.substr(0, colon), corruption.rank) ||
               !CLI::detail::lexical_cast(text.substr(colon + 1), corruption.index)) {
             throw CLI::ValidationError("--corrupt", "RANK:INDEX, not " + text);
           }
           options.corruption = corruption;
         })
      ->group("");
}

void addInertFlags(CLI::App& app, Options& options) {
  const std::string no_device_api = "the library has no device API, so its ordinary operation is measured";
  addInert(app, "-p,--parallel_init", 0, 1, "0 or 1", "threads always join in parallel", options);
  addInert(app, "-x,--cta_policy", 0, 2, "0, 1 or 2", "the library has one policy", options);
  addInert(app, "-D,--device_implementation", 0, kMany, "a kernel of nccl-tests", no_device_api, options);
  addInert(app, "-V,--device_cta_count", 1, kMany, "blocks of that kernel", no_device_api, options);
}

void validate(Options& options) {
  options.sizes.factor = std::max<std::size_t>(options.sizes.factor, 1);
  try {
    sizesOf(options.sizes);
  } catch (const std::invalid_argument& error) {
    throw CLI::ValidationError("sizes", error.what());
  }
  if (options.per_iteration && options.skip >= options.iterations) {
    throw CLI::ValidationError(
        "-K", "leaves none of the " + std::to_string(options.iterations) + " iterations (-n)");
  }
  if (options.graph == 0) return;
  if (options.null_stream) throw CLI::ValidationError("-G", "the NULL stream (-y 1) cannot be recorded");
  if (options.blocking != Blocking::kNone) {
    throw CLI::ValidationError("-G", "a recorded operation cannot be waited for (-z)");
  }
  if (options.per_iteration) throw CLI::ValidationError("-G", "a replay has no single iterations (-I 1)");
}

}  // namespace

ParsedOptions parseOptions(const Collective& collective, int argc, char** argv, bool speaks) {
  const std::string program(collective.program);
  Options options;
  options.arguments.assign(argv, argv + argc);
  CLI::App app("Time, bandwidth and correctness of one collective, with the flags and columns of nccl-tests.",
               program);
  app.footer(
      "Examples:\n  " + program + " --launch 4 -b 8 -e 64M -f 2\n  tutti-run -n 4 " + program +
      " -b 8 -e 64M -f 2\n\nExit status: 0, 1 (wrong values, NCCL_TESTS_MIN_BW missed, failed), 2 (bad "
      "arguments).");
  // As with getopt: of a flag given twice, the last counts.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  addRankFlags(app, options);
  addSizeFlags(app, options);
  addOperationFlags(app, options);
  addMeasureFlags(app, options);
  addReportFlags(app, options);
  addInertFlags(app, options);
  if (const auto status = parseCommandLine(
          app, argc, argv, [&options] { validate(options); }, speaks))
    return {.options = std::nullopt, .exit_status = *status};
  if (collective.hypercube && options.aggregate > 1) {
    options.notes.push_back(fmt::format(
        "-m {} has no effect: the steps of a hypercube wait for each other, so they cannot be in one group",
        options.aggregate));
    options.aggregate = 1;
  }
  return {.options = std::move(options), .exit_status = 0};
}

void fitToDevices(Options& options, device::Kind kind) {
  if (kind != device::Kind::host || options.graph == 0) return;
  options.notes.push_back(
      fmt::format("-G {} has no effect: there are no CUDA graphs in host memory, so operations are called",
                  options.graph));
  options.graph = 0;
}

std::string conflictWithDevices(const Options& options, device::Kind kind, int count) {
  if (kind == device::Kind::host) return {};
  const int ranks = options.threads * options.gpus;
  if (options.null_stream && ranks > count) {
    return fmt::format(
        "-y 1: the {} ranks of a process share {} GPU(s), and the NULL stream of each: the kernel of one "
        "would "
        "wait for that of the other, which is queued behind it. Give each rank a GPU or a process, or leave "
        "-y 1 away",
        ranks, count);
  }
  return {};
}

namespace {

std::string conflictWithMatrix(const Options& options, const Collective& collective, int nranks) {
  const int rows = collective.traffic->matrixRanks();
  if (rows < nranks) {
    return fmt::format("NCCL_TESTS_ALLTOALLV_MATRIX_FILE: a matrix of {} rows for {} ranks", rows, nranks);
  }
  if (options.sizes.min != options.sizes.max) {
    return "-b, -e: must be equal, because the matrix (NCCL_TESTS_ALLTOALLV_MATRIX_FILE) says the sizes";
  }
  const std::size_t needed = collective.span(0, 1, nranks);
  if (options.sizes.max >= needed) return {};
  return fmt::format("-e: {} bytes, where a rank sends or receives {} by the matrix", options.sizes.max,
                     needed);
}

}  // namespace

std::string conflictWithGroup(const Options& options, const Collective& collective, int nranks) {
  const std::string last = "; the last rank is " + std::to_string(nranks - 1);
  if (collective.rooted && options.root >= nranks)
    return "-r: no rank " + std::to_string(options.root) + last;
  if (collective.hypercube && !std::has_single_bit(static_cast<unsigned>(nranks))) {
    return "a hypercube has 2, 4, 8, ... ranks, not " + std::to_string(nranks);
  }
  if (collective.hypercube && options.gpus > 1) {
    return "-g: the steps of a hypercube wait for each other, so they cannot be in one group; use -t";
  }
  if (collective.traffic != nullptr && collective.traffic->matrixRanks() > 0) {
    return conflictWithMatrix(options, collective, nranks);
  }
  if (options.corruption && (options.corruption->rank < 0 || options.corruption->rank >= nranks)) {
    return "--corrupt: no rank " + std::to_string(options.corruption->rank) + last;
  }
  return {};
}

std::string typeName(ncclDataType_t type) { return nameIn(kTypes, type); }

std::string opName(ncclRedOp_t op) { return nameIn(kOps, op); }

}  // namespace tutti::perf
