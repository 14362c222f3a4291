// tutti-gpu-bench: measures on GPUs what tools/gpu-check reports. Prints JSON, a line for each result.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/gpu/combine_kernels.h"
#include "bench/gpu/combine_speed.h"
#include "bench/gpu/contender.h"
#include "bench/gpu/cuda_resources.h"
#include "bench/gpu/output.h"
#include "bench/gpu/race.h"
#include "bench/gpu/ring_yardstick.h"

namespace tutti::gpu_bench {
namespace {

constexpr int kNotCoResident = 3;  ///< exit status

int gpuCount() {
  int count = 0;
  checkCuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

void printDevices() {
  int driver = 0;
  int runtime = 0;
  const int gpus = gpuCount();
  checkCuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  checkCuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  Json devices = Json::array();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    cudaDeviceProp properties{};
    checkCuda(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
    Json reached = Json::array();
    for (int peer = 0; peer < gpus; ++peer) {
      int can = 0;
      if (peer != gpu) checkCuda(cudaDeviceCanAccessPeer(&can, gpu, peer), "cudaDeviceCanAccessPeer");
      if (can != 0) reached.push_back(peer);
    }
    devices.push_back(
        {{"name", static_cast<const char*>(properties.name)},
         {"compute_capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
         {"multiprocessors", properties.multiProcessorCount},
         {"memory_bytes", properties.totalGlobalMem},
         {"l2_bytes", properties.l2CacheSize},
         {"reaches", reached}});
  }
  printLine({{"measure", "devices"}, {"cuda_driver", driver}, {"cuda_runtime", runtime}, {"gpus", devices}});
}

/// Whether all blocks of all ranks of a GPU run at once; says how that is known.
bool provesCoResidency(const Arrangement& arrangement, const char* kernel, cudaError_t (*occupancy)(int*)) {
  const int ranks = (arrangement.ranks + arrangement.gpus - 1) / arrangement.gpus;
  int per_multiprocessor = 0;
  int multiprocessors = 0;
  checkCuda(occupancy(&per_multiprocessor), "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  checkCuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            "cudaDeviceGetAttribute");
  const bool fits = ranks * arrangement.lanes <= per_multiprocessor * multiprocessors;
  printLine({{"measure", "co_residency"},
             {"kernel", kernel},
             {"ranks_on_a_gpu", ranks},
             {"blocks_of_a_rank", arrangement.lanes},
             {"blocks_per_multiprocessor", per_multiprocessor},
             {"multiprocessors", multiprocessors},
             {"capacity", per_multiprocessor * multiprocessors},
             {"fits", fits}});
  return fits;
}

struct AllReduceCommand {
  RaceOptions options;
  std::string tutti;
  std::string nccl;
  bool with_yardstick = false;
  bool with_copy = false;
  bool sets_slots = false;  ///< else they are the library's own choice, unless the yardstick needs the same

  int run() const {
    const Arrangement& arrangement = options.arrangement;
    if (arrangement.gpus > gpuCount()) {
      throw std::runtime_error("--gpus " + std::to_string(arrangement.gpus) + ", but there are " +
                               std::to_string(gpuCount()));
    }
    if (!provesCoResidency(arrangement, "tuttiCollectiveFloat32", collectiveBlocksPerMultiprocessor))
      return kNotCoResident;
    if (with_yardstick && !provesCoResidency(arrangement, "ring yardstick", ringBlocksPerMultiprocessor))
      return kNotCoResident;
    // Before a library is loaded: it reads its settings once.
    ::setenv("TUTTI_DEVICE", "cuda", 1);
    ::setenv("TUTTI_LANES", std::to_string(arrangement.lanes).c_str(), 1);
    if (with_yardstick || sets_slots) {
      ::setenv("TUTTI_SLOTS", std::to_string(arrangement.slot_count).c_str(), 1);
      ::setenv("TUTTI_SLOT_BYTES", std::to_string(arrangement.slot_bytes).c_str(), 1);
    }
    std::vector<std::unique_ptr<Contender>> contenders;
    contenders.push_back(loadLibrary("tutti", tutti, arrangement));
    if (!nccl.empty()) contenders.push_back(loadLibrary("NCCL", nccl, arrangement));
    if (with_yardstick) contenders.push_back(makeYardstick(arrangement));
    if (with_copy) contenders.push_back(makeCopy());
    race(options, contenders);
    return 0;
  }
};

void requireSense(const AllReduceCommand& command) {
  const Arrangement& arrangement = command.options.arrangement;
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw CLI::ValidationError(what);
  };
  require(!command.with_copy || arrangement.ranks == 1, "--copy is for one rank");
  require(!command.with_yardstick || (arrangement.ranks > 1 && arrangement.gpus == 1),
          "--yardstick is for two or more ranks on one GPU");
  require(command.nccl.empty() || arrangement.ranks <= arrangement.gpus, "--nccl needs a GPU for each rank");
  for (const std::size_t bytes : command.options.bytes)
    require(bytes != 0 && bytes % 16 == 0, "--bytes: multiples of 16");
}

CLI::App* addCombine(CLI::App& app, CombineOptions& options) {
  CLI::App* sub = app.add_subcommand("combine", "sums and copies of the kernels against cudaMemcpyAsync");
  sub->add_option("--bytes", options.bytes, "of one operand, such as 1M,64M")
      ->required()
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--blocks", options.blocks, "such as 8,32")
      ->required()
      ->delimiter(',')
      ->check(CLI::Range(1, 65535));
  sub->add_option("--piece", options.piece_bytes, "bytes of one call")->transform(CLI::AsSizeValue(false));
  sub->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  sub->add_option("--sample-us", options.sample_us, "length of a sample");
  return sub;
}

CLI::App* addAllReduce(CLI::App& app, AllReduceCommand& command) {
  static const std::map<std::string, Mode> kModes{
      {"stream", Mode::stream}, {"graph", Mode::graph}, {"latency", Mode::latency}};
  RaceOptions& options = command.options;
  Arrangement& arrangement = options.arrangement;
  CLI::App* sub = app.add_subcommand("all-reduce", "float sums of ranks as threads, by size");
  sub->add_option("--bytes", options.bytes, "such as 1K,1M")
      ->required()
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  sub->add_option("--ranks", arrangement.ranks)->check(CLI::Range(1, 64));
  sub->add_option("--gpus", arrangement.gpus, "rank r is on GPU r % gpus")->check(CLI::Range(1, 64));
  sub->add_option("--lanes", arrangement.lanes, "blocks of a rank")->check(CLI::Range(1, 16));
  sub->add_option("--slots", arrangement.slot_count)->check(CLI::Range(2, 64));
  sub->add_option("--slot-bytes", arrangement.slot_bytes)
      ->transform(CLI::AsSizeValue(false))
      ->each([&command](const std::string&) { command.sets_slots = true; });
  sub->add_option("--mode", options.mode, "stream, graph or latency")
      ->transform(CLI::CheckedTransformer(kModes));
  sub->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  sub->add_option("--sample-us", options.sample_us, "length of a sample");
  sub->add_option("--tutti", command.tutti, "libtutti.so")->required();
  sub->add_option("--nccl", command.nccl, "libnccl.so.2, to measure beside");
  sub->add_flag("--yardstick", command.with_yardstick, "the hand-written ring beside");
  sub->add_flag("--copy", command.with_copy, "cudaMemcpyAsync beside");
  return sub;
}

int run(int argc, char** argv) {
  CLI::App app("Measures on GPUs; prints JSON lines. tools/gpu-check makes a report of them.");
  app.require_subcommand(1);
  CombineOptions combine;
  AllReduceCommand all_reduce;
  const CLI::App* devices = app.add_subcommand("devices", "what GPUs there are");
  const CLI::App* combine_command = addCombine(app, combine);
  addAllReduce(app, all_reduce);
  try {
    app.parse(argc, argv);
    if (!devices->parsed() && !combine_command->parsed()) requireSense(all_reduce);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (devices->parsed()) {
    printDevices();
  } else if (combine_command->parsed()) {
    measureCombine(combine);
  } else {
    return all_reduce.run();
  }
  return 0;
}

}  // namespace
}  // namespace tutti::gpu_bench

int main(int argc, char** argv) {
  try {
    return tutti::gpu_bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tutti-gpu-bench: %s\n", error.what());
    return 1;
  }
}
