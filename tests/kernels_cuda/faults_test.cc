// How kernels give up, and what they say of long waits; and that a captured graph replays.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "collectives/planner.h"
#include "tests/kernels_cuda/cuda_world.h"
#include "tests/kernels_cuda/played_peers.h"

namespace tutti::test {
namespace {

constexpr LinkShape kShape{.lanes = 2, .slot_count = 2, .slot_bytes = 512, .packet_bytes = 4096};
constexpr std::uint64_t kCount = 1000;

Descriptor sumOf(std::uint64_t count) {
  return {.collective = Collective::all_reduce, .type = DataType::float32, .op = RedOp::sum, .count = count};
}

Plan planOf(const Descriptor& d, int nranks, PlanOverride::Form form = PlanOverride::Form::plain) {
  return makePlan(d, Layout::oneHost(nranks), kShape, {PlanOverride::Pick::automatic, form});
}

/// One rank of two, waiting for a peer that does not come.
struct Lonely {
  CudaWorld world{2, kShape};
  PinnedMemory input{kCount * 4};
  PinnedMemory output{kCount * 4};

  void launch(PlanOverride::Form form = PlanOverride::Form::plain) {
    const std::uint64_t count = form == PlanOverride::Form::packets ? 16 : kCount;
    world.launch(0, collectiveTask(planOf(sumOf(count), 2, form), input.data(), output.data()));
  }
};

/// False if it does not hold after a long time.
bool eventually(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::uint64_t read(const void* word) {
  return std::atomic_ref(*static_cast<std::uint64_t*>(const_cast<void*>(word)))
      .load(std::memory_order_acquire);
}

class CudaStop : public testing::TestWithParam<PlanOverride::Form> {};

TEST_P(CudaStop, EndsTheKernelAndAllAfterIt) {
  Lonely lonely;
  lonely.launch(GetParam());
  CudaControl& control = lonely.world.control(0);
  ASSERT_TRUE(eventually([&] { return control.waits[0].serial.load() != 0; }));
  EXPECT_EQ(read(&control.waits[0].operation), 1U);
  EXPECT_EQ(static_cast<std::uint32_t>(read(&control.waits[0].peer)), 1U);
  EXPECT_EQ(control.started.load(), 1U);
  EXPECT_EQ(lonely.world.status(0).entered.load(), 1U);
  control.stop.store(1);
  lonely.world.wait(0);
  EXPECT_EQ(control.waits[0].serial.load(), 0U);
  EXPECT_EQ(control.finished.load(), 1U);
  EXPECT_EQ(control.operations.load(), 0U);
  EXPECT_EQ(lonely.world.status(0).completed.load(), 0U);
  EXPECT_EQ(control.fault.claimed.load(), 0U);
  // Nothing runs any more.
  lonely.launch(GetParam());
  lonely.world.wait(0);
  EXPECT_EQ(control.finished.load(), 2U);
  EXPECT_EQ(control.operations.load(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Forms, CudaStop,
                         testing::Values(PlanOverride::Form::plain, PlanOverride::Form::packets),
                         [](const auto& param) {
                           return param.param == PlanOverride::Form::plain ? "slots" : "packets";
                         });

TEST(CudaFaults, DeadlineNamesThePeer) {
  for (const auto form : {PlanOverride::Form::plain, PlanOverride::Form::packets}) {
    Lonely lonely;
    CudaControl& control = lonely.world.control(0);
    control.wait_limit_ns.store(20'000'000);
    lonely.launch(form);
    lonely.world.wait(0);
    EXPECT_EQ(control.fault.kind.load(), static_cast<std::uint32_t>(CudaFaultKind::deadline));
    EXPECT_EQ(control.fault.peer, 1);
    EXPECT_GE(control.fault.sequence, 20'000'000U);
    EXPECT_EQ(control.fault.expected, 20'000'000U);
    EXPECT_EQ(lonely.world.status(0).completed.load(), 0U);
  }
}

/// What rank 0 makes of a slot of rank 1 that `spoil` has changed.
void expectRefusal(CudaFaultKind kind, const std::function<void(SlotHeader&)>& spoil) {
  Lonely lonely;
  playPeers(lonely.world, sumOf(kCount), 64, {{lonely.input.data(), lonely.output.data()}});
  const LinkView& link = lonely.world.link(1, 0);
  spoil(link.header(0));
  const SlotHeader header = link.header(0);
  lonely.launch();
  lonely.world.wait(0);
  const CudaFault& fault = lonely.world.control(0).fault;
  EXPECT_EQ(fault.kind.load(), static_cast<std::uint32_t>(kind));
  EXPECT_EQ(fault.peer, 1);
  EXPECT_EQ(fault.ours, sumOf(kCount));
  if (kind == CudaFaultKind::differs) {
    EXPECT_EQ(fault.theirs, header.descriptor);
  }
  if (kind == CudaFaultKind::unreachable) {
    EXPECT_EQ(fault.sequence, header.from_region);
  }
  EXPECT_EQ(link.released->value.load(), 0U);
}

TEST(CudaFaults, SlotsOfAnotherOperationAreRefused) {
  expectRefusal(CudaFaultKind::differs, [](SlotHeader& header) { header.descriptor.count = 999; });
}

TEST(CudaFaults, DamagedSlotsAreRefused) {
  expectRefusal(CudaFaultKind::damaged, [](SlotHeader& header) { header.sequence = 5; });
  expectRefusal(CudaFaultKind::damaged, [](SlotHeader& header) { header.bytes = 100'000; });
}

TEST(CudaFaults, RegionsThatAreNotMappedAreRefused) {
  expectRefusal(CudaFaultKind::unreachable, [](SlotHeader& header) {
    header.kind = SlotKind::region;
    header.from_region = 9;
    header.from = 0;
  });
}

TEST(CudaGraphs, ReplayAsOftenAsLiked) {
  constexpr int kRanks = 2;
  for (const auto form : {PlanOverride::Form::plain, PlanOverride::Form::packets}) {
    CudaWorld world(kRanks, kShape);
    const std::uint64_t count = form == PlanOverride::Form::packets ? 100 : kCount;
    const Plan plan = planOf(sumOf(count), kRanks, form);
    std::vector<std::unique_ptr<PinnedMemory>> buffers;
    cudaGraphExec_t graphs[kRanks] = {};
    for (int r = 0; r < kRanks; ++r) {
      auto* buffer = buffers.emplace_back(std::make_unique<PinnedMemory>(count * 4))->as<float>();
      for (std::uint64_t i = 0; i < count; ++i) buffer[i] = 1;
      checkCuda(cudaStreamBeginCapture(world.stream(r), cudaStreamCaptureModeThreadLocal), "capture");
      auto* bytes = reinterpret_cast<std::byte*>(buffer);
      world.launch(r, collectiveTask(plan, bytes, bytes));
      cudaGraph_t graph = nullptr;
      checkCuda(cudaStreamEndCapture(world.stream(r), &graph), "capture");
      checkCuda(cudaGraphInstantiate(&graphs[r], graph, 0), "instantiate");
      cudaGraphDestroy(graph);
    }
    constexpr int kReplays = 100;
    for (int i = 0; i < kReplays; ++i) {
      for (int r = 0; r < kRanks; ++r) checkCuda(cudaGraphLaunch(graphs[r], world.stream(r)), "replay");
    }
    for (int r = 0; r < kRanks; ++r) {
      world.wait(r);
      cudaGraphExecDestroy(graphs[r]);
      EXPECT_EQ(world.control(r).operations.load(), static_cast<std::uint64_t>(kReplays));
      const auto* buffer = buffers[static_cast<std::size_t>(r)]->as<float>();
      for (std::uint64_t i = 0; i < count; ++i) ASSERT_EQ(buffer[i], 0x1p100F) << i;
    }
  }
}

}  // namespace
}  // namespace tutti::test
