// Predicted against measured: the all-reduce of two ranks in host memory.
//
// Each round calibrates and measures, one after the other, so that both see the same load of the machine:
//
//   calibrated  two processes do at the same time, without waiting for each other, what the direct program
//               makes them do with every byte: copies between user memory and slots, and `combine` of two
//               sources into two destinations, in blocks of a slot. No link, no counter, no wait: what is in
//               a slot is whatever the other process has written there last.
//   measured    the same processes as ranks: ncclAllReduce on buffers of the same size.
//
// The prediction is runtime/topology/prediction.h's, with what was calibrated. Medians of all rounds are
// compared; the spread is the range of the rounds around their median.
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/host/combine.h"
#include "nccl.h"
#include "runtime/core/cpu_affinity.h"
#include "runtime/cpu_binding.h"
#include "runtime/topology/discovery.h"
#include "runtime/topology/prediction.h"
#include "runtime/topology/search.h"

namespace tutti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRanks = 2;
constexpr std::size_t kSlotBytes = 128 << 10;
constexpr std::size_t kSlots = 4;
constexpr std::uint64_t kBytesPerRound = 512 << 20;  ///< of messages: how long a round takes
constexpr std::chrono::seconds kLongestWait{60};

struct Rates {
  double combine_gbytes_per_s = 0;
  double copy_gbytes_per_s = 0;
};

/// What both processes see.
struct Shared {
  std::atomic<int> arrived[2];
  ncclUniqueId id;
  Rates rates[kRanks];
  alignas(64) std::byte slots[kRanks][kSlots][kSlotBytes];  ///< by receiver
};

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

void check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) throw std::runtime_error(fmt::format("{}: {}", call, ncclGetLastError(nullptr)));
}

/// Waits for the other process; `turn` counts meetings.
void meet(Shared& shared, int* turn) {
  std::atomic<int>& arrived = shared.arrived[*turn % 2];
  const int target = (*turn / 2 + 1) * kRanks;
  ++*turn;
  arrived.fetch_add(1);
  const auto begin = Clock::now();
  while (arrived.load() < target) {
    ::sched_yield();
    if (Clock::now() - begin > kLongestWait) throw std::runtime_error("the other process does not come");
  }
}

struct Buffers {
  std::vector<float> input;
  std::vector<float> output;
};

/// One pass over a message: half of it is this rank's to reduce.
class Calibration {
 public:
  Calibration(Shared& shared, int rank, Buffers& buffers)
      : in_(shared.slots[rank]), out_(shared.slots[1 - rank]), buffers_(buffers) {}

  void pass() {
    const std::size_t bytes = buffers_.input.size() * sizeof(float);
    auto* input = reinterpret_cast<std::byte*>(buffers_.input.data());
    auto* output = reinterpret_cast<std::byte*>(buffers_.output.data());
    for (std::size_t at = 0; at < bytes / 2; at += kSlotBytes, ++turn_) {
      const std::size_t n = std::min(kSlotBytes, bytes / 2 - at);
      copy(out_[turn_ % kSlots], input + bytes / 2 + at, n);
      combine(input + at, in_[turn_ % kSlots], output + at, n);
      copy(output + bytes / 2 + at, out_[turn_ % kSlots], n);
    }
  }
  Rates rates() const { return {combined_ / combining_ / 1e9, copied_ / copying_ / 1e9}; }

 private:
  void copy(std::byte* to, const std::byte* from, std::size_t n) {
    const auto begin = Clock::now();
    std::memcpy(to, from, n);
    copying_ += seconds(Clock::now() - begin);
    copied_ += 2 * static_cast<double>(n);
  }
  void combine(const std::byte* own, std::byte* slot, std::byte* result, std::size_t n) {
    const std::byte* const srcs[] = {own, slot};
    std::byte* const dsts[] = {result, slot};
    const auto begin = Clock::now();
    combine_({.dsts = dsts,
              .srcs = srcs,
              .dst_count = 2,
              .src_count = 2,
              .n = n / sizeof(float),
              .nranks = kRanks,
              .last = true});
    combining_ += seconds(Clock::now() - begin);
    combined_ += 4 * static_cast<double>(n);
  }

  CombineFn combine_ = combineFunction(DataType::float32, RedOp::sum);
  std::byte (&in_)[kSlots][kSlotBytes];
  std::byte (&out_)[kSlots][kSlotBytes];
  Buffers& buffers_;
  std::size_t turn_ = 0;
  double copying_ = 0;
  double copied_ = 0;
  double combining_ = 0;
  double combined_ = 0;
};

Cluster thisHost(const std::vector<int>& cores) {
  const auto topology = std::make_shared<const Topology>(discoverTopology({.with_gpus = false}));
  const std::vector<int> nodes = topology->all(TopologyKind::numa_node);
  Cluster::HostShape shape{.topology = topology, .seats = {}, .caches = {}};
  for (int rank = 0; rank < kRanks; ++rank) {
    const int core = cores[static_cast<std::size_t>(rank) % cores.size()];
    const auto own = std::ranges::find_if(nodes, [&](int node) {
      const auto& cpus = topology->nodes[static_cast<std::size_t>(node)].cpu.cpus;
      return std::ranges::find(cpus, core) != cpus.end();
    });
    shape.seats.push_back(own == nodes.end() ? nodes.at(0) : *own);
  }
  Cluster cluster;
  cluster.shapes.push_back(std::move(shape));
  cluster.hosts.push_back({.name = "", .shape = 0, .ranks = {0, 1}});
  return cluster;
}

struct Prediction {
  double gbytes_per_s = 0;
  std::string limit;
};

Prediction predict(const Cluster& cluster, const SearchResult& found, const Rates& rates) {
  const HostMemoryCosts costs{.combine_gbytes_per_s = rates.combine_gbytes_per_s,
                              .copy_gbytes_per_s = rates.copy_gbytes_per_s};
  for (const PredictedBandwidth& predicted : predictBandwidths(cluster, found, costs)) {
    if (predicted.collective == Collective::all_reduce) {
      return {predicted.bus_gbytes_per_s, predicted.limit};
    }
  }
  return {};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string withSpread(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return fmt::format("{:6.2f} ({:.2f} to {:.2f})", median(values), least, most);
}

struct Row {
  std::size_t bytes = 0;
  std::vector<double> combine;
  std::vector<double> copy;
  std::vector<double> measured;
};

class Bench {
 public:
  Bench(Shared& shared, int rank, ncclComm_t comm, int* turn)
      : shared_(shared), rank_(rank), comm_(comm), turn_(turn) {}

  void round(Row& row) {
    Buffers buffers{std::vector<float>(row.bytes / sizeof(float)),
                    std::vector<float>(row.bytes / sizeof(float))};
    const auto passes = std::max<std::uint64_t>(3, kBytesPerRound / row.bytes);
    Calibration warm(shared_, rank_, buffers);
    warm.pass();
    Calibration calibration(shared_, rank_, buffers);
    meet(shared_, turn_);
    for (std::uint64_t i = 0; i < passes; ++i) calibration.pass();
    shared_.rates[rank_] = calibration.rates();
    allReduce(buffers);
    meet(shared_, turn_);
    const auto begin = Clock::now();
    for (std::uint64_t i = 0; i < passes; ++i) allReduce(buffers);
    const double each = seconds(Clock::now() - begin) / static_cast<double>(passes);
    // The slower of the two is who the other waits for.
    const Rates &a = shared_.rates[0], &b = shared_.rates[1];
    row.combine.push_back(std::min(a.combine_gbytes_per_s, b.combine_gbytes_per_s));
    row.copy.push_back(std::min(a.copy_gbytes_per_s, b.copy_gbytes_per_s));
    row.measured.push_back(static_cast<double>(row.bytes) / each / 1e9);  // 2(n-1)/n is 1
    meet(shared_, turn_);
  }

 private:
  void allReduce(Buffers& buffers) {
    check(ncclAllReduce(buffers.input.data(), buffers.output.data(), buffers.input.size(), ncclFloat, ncclSum,
                        comm_, nullptr),
          "ncclAllReduce");
  }

  Shared& shared_;
  int rank_;
  ncclComm_t comm_;
  int* turn_;
};

void print(const std::vector<Row>& rows, const std::vector<int>& cores) {
  const Cluster cluster = thisHost(cores);
  const SearchResult found = searchCluster(cluster, {});
  fmt::print("all-reduce of float, 2 processes in host memory; GB/s, medians of {} rounds (range)\n",
             rows[0].measured.size());
  fmt::print("{:>10}  {:>24}  {:>24}  {:>9}  {:>24}  {:>6}\n", "bytes", "combine", "copy", "predicted",
             "measured bus", "error");
  bool is_near = true;
  std::string limit;
  for (const Row& row : rows) {
    const Prediction predicted = predict(cluster, found, {median(row.combine), median(row.copy)});
    const double error = predicted.gbytes_per_s / median(row.measured) - 1;
    is_near = is_near && std::abs(error) <= 0.25;
    limit = predicted.limit;
    fmt::print("{:>10}  {:>24}  {:>24}  {:>9.2f}  {:>24}  {:>+5.0f}%\n", row.bytes, withSpread(row.combine),
               withSpread(row.copy), predicted.gbytes_per_s, withSpread(row.measured), 100 * error);
  }
  fmt::print("limit: {}\nwithin 25 %: {}\n", limit, is_near ? "yes" : "no");
}

int run(const std::vector<std::size_t>& sizes, int rounds) {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error(fmt::format("mmap: {}", std::strerror(errno)));
  auto& shared = *new (memory) Shared;
  const std::vector<int> cores = allowedCpus();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  const int rank = child == 0 ? 1 : 0;
  if (rank == 1) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const CpuBinding core({cores[static_cast<std::size_t>(rank) % cores.size()]});
  int turn = 0;
  if (rank == 0) check(ncclGetUniqueId(&shared.id), "ncclGetUniqueId");
  meet(shared, &turn);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, kRanks, shared.id, rank), "ncclCommInitRank");
  meet(shared, &turn);
  std::vector<Row> rows;
  rows.reserve(sizes.size());
  for (const std::size_t bytes : sizes)
    rows.push_back({.bytes = bytes, .combine = {}, .copy = {}, .measured = {}});
  Bench bench(shared, rank, comm, &turn);
  for (int i = 0; i < rounds; ++i) {
    for (Row& row : rows) bench.round(row);
  }
  check(ncclCommDestroy(comm), "ncclCommDestroy");
  if (rank == 1) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  print(rows, cores);
  return status == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  std::vector<std::size_t> sizes{1 << 20, 16 << 20, 64 << 20};
  int rounds = 5;
  CLI::App app{
      "Predicts the all-reduce of two ranks in host memory from what combine reaches alone, and measures "
      "it."};
  app.add_option("--sizes", sizes, "bytes of the messages")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--rounds", rounds, "how often everything is measured, in turn")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  ::setenv("TUTTI_DEVICE", "host", 1);
  try {
    return tutti::run(sizes, rounds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tutti_prediction: {}\n", error.what());
    return 1;
  }
}
