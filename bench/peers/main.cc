// One program of the comparison: measures one library and prints a line of JSON per size. bench/compare
// starts it and joins the lines of all libraries.
#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/peers/loop.h"
#include "bench/peers/peer.h"

namespace tutti::peers {
namespace {

/// Between the two buffers, so that they do not compete for the same sets of the caches.
constexpr std::size_t kSpacing = std::size_t{64} << 10;

struct Arguments {
  Kind kind = Kind::kAllReduce;
  Type type = Type::kFloat;
  std::vector<std::size_t> sizes{8};
  bool registered = false;
  double budget_ms = 5;
  LoopSettings loop{.budget_us = 0, .samples = 5, .in_place = false};
};

const std::map<std::string, Kind> kKinds{
    {"all_reduce", Kind::kAllReduce}, {"reduce_scatter", Kind::kReduceScatter},
    {"all_gather", Kind::kAllGather}, {"broadcast", Kind::kBroadcast},
    {"reduce", Kind::kReduce},        {"sendrecv", Kind::kSendRecv},
    {"alltoall", Kind::kAllToAll}};
const std::map<std::string, Type> kTypes{{"float", Type::kFloat}, {"bfloat16", Type::kBfloat16}};

/// The cores this process may use; taken before a library or its launcher narrows them.
cpu_set_t allowedCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof(cores), &cores);
  return cores;
}

/// One core per rank, in turn. After joining: a library that asks for the number of cores, to decide how to
/// wait, must see all of them.
void pin(const cpu_set_t& allowed, int rank) {
  int left = rank % std::max(CPU_COUNT(&allowed), 1);
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

std::string listText(const std::vector<double>& values) {
  return fmt::format("[{:.4f}]", fmt::join(values, ", "));
}

void say(const Peer& peer, const std::string& line) {
  if (peer.rank() != 0) return;
  std::puts(line.c_str());
  std::fflush(stdout);  // a run that is cut short keeps what it has
}

int run(Peer& peer, const Arguments& arguments) {
  say(peer, fmt::format(R"({{"version": "{}", "ranks": {}}})", peer.version(), peer.size()));
  const std::size_t largest = *std::max_element(arguments.sizes.begin(), arguments.sizes.end()) + 64;
  std::byte* const send = peer.allocate(largest + kSpacing, arguments.registered);
  std::byte* const recv = peer.allocate(largest + kSpacing, arguments.registered) + kSpacing;
  bool good = true;
  for (const std::size_t bytes : arguments.sizes) {
    const Operation operation = operationOf(arguments.kind, arguments.type, bytes, peer.size());
    if (operation.count == 0) continue;
    const Timing timing = measure(peer, operation, arguments.loop, send, recv);
    say(peer,
        fmt::format(R"({{"bytes": {}, "iterations": {}, "loop_us": {}, "touch_us": {}, "wrong": {}}})", bytes,
                    timing.iterations, listText(timing.loop_us), listText(timing.touch_us), timing.wrong));
    good = good && timing.wrong == 0;
  }
  return good ? 0 : 1;
}

}  // namespace

std::byte* ordinaryMemory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  void* memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (memory == nullptr) {
    std::fprintf(stderr, "no memory for %zu bytes\n", bytes);
    std::exit(1);
  }
  struct Free {
    void operator()(void* owned) const { std::free(owned); }
  };
  static std::vector<std::unique_ptr<void, Free>> all;  // until the program ends
  all.emplace_back(memory);
  auto* const first = static_cast<std::byte*>(memory);
  std::fill_n(first, bytes, std::byte{0x3f});  // pages that nobody wrote are one shared page of zeros
  return first;
}

}  // namespace tutti::peers

int main(int argc, char** argv) {
  using namespace tutti::peers;
  const cpu_set_t cores = allowedCores();
  const auto peer = join(&argc, &argv);
  pin(cores, peer->rank());
  Arguments arguments;
  CLI::App app("Times one collective of one library; started by bench/compare.");
  app.add_option("--collective", arguments.kind)->transform(CLI::CheckedTransformer(kKinds));
  app.add_option("--type", arguments.type)->transform(CLI::CheckedTransformer(kTypes));
  app.add_option("--sizes", arguments.sizes, "bytes")->delimiter(',');
  app.add_flag("--registered", arguments.registered);
  app.add_flag("--in-place", arguments.loop.in_place, "all-reduce only; broadcast always is");
  app.add_option("--budget-ms", arguments.budget_ms, "time of one stretch of calls");
  app.add_option("--samples", arguments.loop.samples)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  arguments.loop.budget_us = arguments.budget_ms * 1e3;
  if (arguments.loop.in_place && arguments.kind != Kind::kAllReduce && arguments.kind != Kind::kBroadcast) {
    std::fputs("--in-place: all_reduce and broadcast only\n", stderr);
    return 2;
  }
  return run(*peer, arguments);
}
