// Links: what a hand-over between two threads costs, with nothing in the slot and with a slot of data.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/host/host_executor.h"
#include "runtime/core/wait.h"
#include "transports/rank_memory.h"

namespace tutti {
namespace {

/// One 64-byte line, written by each side in turn: the floor of any exchange.
void lineExchange(benchmark::State& state) {
  Counter ping;
  Counter pong;
  std::atomic<bool> stop{false};
  std::thread echo([&] {
    for (std::uint64_t seen = 0; !stop.load(std::memory_order_relaxed);) {
      const std::uint64_t now = ping.value.load(std::memory_order_acquire);
      if (now != seen) pong.value.store(seen = now, std::memory_order_release);
    }
  });
  std::uint64_t turn = 0;
  for (auto _ : state) {
    ping.value.store(++turn, std::memory_order_release);
    while (pong.value.load(std::memory_order_acquire) != turn) {
    }
  }
  stop = true;
  echo.join();
}
BENCHMARK(lineExchange)->UseRealTime();

/// A slot goes to the other thread and one comes back: reserve, combine, post, await, release on both sides,
/// through the executor. Argument: bytes in the slot. Half of the time is one hand-over.
void slotHandOver(benchmark::State& state) {
  const auto bytes = static_cast<std::uint32_t>(state.range(0));
  const LinkShape shape{.lanes = 1, .slot_count = 4, .slot_bytes = std::max(64U, bytes)};
  SegmentCache cache;
  const auto segment = cache.create(2 * RankMemory::bytes(shape, 2));
  const RankMemory memory0(segment, shape, 2, 0);
  const RankMemory memory1(segment, shape, 2, 1);
  memory0.reserve();
  memory1.reserve();
  const std::vector<LinkView> there{memory1.link(0, 0)};
  const std::vector<LinkView> back{memory0.link(0, 1)};
  FaultCell fault;
  NoMonitor monitor;
  const WaitContext wait{fault, monitor, 1000};
  const Plan plan{.descriptor = {.collective = Collective::broadcast, .type = DataType::int8},
                  .nranks = 2,
                  .slot_elements = shape.slot_bytes};
  std::vector<std::byte> here(bytes + 1);
  std::vector<std::byte> other(bytes + 1);

  const auto turn = [&](HostExecutor& exec, bool first) {
    const auto send = [&] {
      if (!exec.reserve({}) || !exec.combine({slot(Outbound{})}, {input(0)}, bytes, Last::no)) return false;
      exec.post({}, bytes);
      return true;
    };
    if (first && !send()) return false;
    if (!exec.await({}) || !exec.combine({output(0)}, {slot(Inbound{})}, bytes, Last::no)) return false;
    exec.release({});
    return first || send();
  };
  std::array<PeerState, 1> here_states;
  std::array<PeerState, 1> there_states;
  const auto linksOf = [](auto& in, auto& out, auto& states) {
    return HostLinks{.inbound = in,
                     .outbound = out,
                     .peers = {},
                     .accepted = {},
                     .states = states,
                     .executor = 1,
                     .scratch = {}};
  };
  std::thread echo([&] {
    HostExecutor exec(plan, {other.data(), other.data()}, linksOf(there, back, there_states), wait, fault);
    while (turn(exec, false)) {
    }
  });
  HostExecutor exec(plan, {here.data(), here.data()}, linksOf(back, there, here_states), wait, fault);
  for (auto _ : state) turn(exec, true);
  fault.trip(ncclInternalError, "the benchmark is over");
  echo.join();
  state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(bytes));
}
BENCHMARK(slotHandOver)->Arg(0)->Arg(64)->Arg(4096)->Arg(128 << 10)->UseRealTime();

}  // namespace
}  // namespace tutti
