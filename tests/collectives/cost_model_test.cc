// The cost model against what programs were traced to do, and against sums by hand.
#include "collectives/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/planner.h"
#include "collectives/programs.h"
#include "collectives/trace.h"
#include "tests/harness/oracle.h"

namespace tutti {
namespace {

using Pick = PlanOverride::Pick;

Plan planOf(Collective collective, Pick pick, const Layout& layout, std::uint64_t count) {
  return makePlan({.collective = collective, .type = DataType::float32, .count = count}, layout,
                  {.lanes = 1, .slot_count = 4, .slot_bytes = 1 << 16}, {pick, PlanOverride::Form::plain});
}

Replay traced(const Plan& plan) {
  Traces traces;
  for (int rank = 0; rank < plan.nranks; ++rank) {
    TraceExecutor executor;
    EXPECT_TRUE(runProgram(executor, plan, laneWork(plan, rank, 0)));
    traces.push_back({executor.events()});
  }
  const Descriptor& d = plan.descriptor;
  return replay(traces, {.links = meshLinks(plan.nranks),
                         .slot_count = 4,
                         .slot_elements = plan.slot_elements,
                         .input_elements = test::inputCount(d.collective, plan.nranks, d.count),
                         .output_elements = test::outputCount(d.collective, plan.nranks, d.count)});
}

/// Where the busiest rank is one that sends, and results do not come back in slots.
TEST(CostModel, BytesAreThoseThatTheBusiestRankSends) {
  const std::pair<Collective, Pick> cases[] = {
      {Collective::all_reduce, Pick::ring},       {Collective::reduce_scatter, Pick::ring},
      {Collective::all_gather, Pick::ring},       {Collective::broadcast, Pick::ring},
      {Collective::reduce, Pick::ring},           {Collective::all_reduce, Pick::one_shot},
      {Collective::reduce_scatter, Pick::direct}, {Collective::all_gather, Pick::direct},
      {Collective::broadcast, Pick::direct},      {Collective::all_to_all, Pick::direct},
      {Collective::scatter, Pick::direct}};
  for (const auto& [collective, pick] : cases) {
    for (const int nranks : {2, 4, 8}) {
      const Plan plan = planOf(collective, pick, Layout::oneHost(nranks), 1024);
      const Replay replay = traced(plan);
      ASSERT_EQ(replay.error, "");
      const Effort effort = effortOf(plan, 1).inside;
      EXPECT_EQ(effort.bytes, 4.0 * static_cast<double>(*std::ranges::max_element(replay.sent_elements)))
          << name(collective) << " by " << name(plan.algorithm) << " on " << nranks;
      if (pick != Pick::ring) continue;  // the others post to all peers in one step
      EXPECT_EQ(effort.steps, collective == Collective::broadcast || collective == Collective::reduce
                                  ? nranks - 1.0
                                  : static_cast<double>(replay.steps[0]));
    }
  }
}

TEST(CostModel, SumsByHand) {
  const LinkCosts costs{{2, 10}, {20, 1}};  // 2 us and 10 GB/s inside hosts, 20 us and 1 GB/s between
  const auto estimate = [&](Collective collective, Pick pick, const Layout& layout, std::uint64_t count) {
    return estimateMicroseconds(planOf(collective, pick, layout, count), layout.hosts, costs);
  };
  constexpr std::uint64_t kMillion = 1'000'000;  // of floats: 4 MB, 400 us inside, 4000 us between
  // 6 steps of 1 MB.
  EXPECT_DOUBLE_EQ(estimate(Collective::all_reduce, Pick::ring, Layout::oneHost(4), kMillion), 12 + 600);
  // Contributions of 3/4 there, results of 3/4 back.
  EXPECT_DOUBLE_EQ(estimate(Collective::all_reduce, Pick::direct, Layout::oneHost(4), kMillion), 4 + 600);
  EXPECT_DOUBLE_EQ(estimate(Collective::all_to_all, Pick::direct, Layout::oneHost(4), kMillion), 2 + 1200);
  EXPECT_DOUBLE_EQ(estimate(Collective::gather, Pick::direct, Layout::oneHost(3), kMillion), 2 + 800);
  EXPECT_DOUBLE_EQ(estimate(Collective::all_reduce, Pick::ring, {4, 4, 1}, kMillion), 120 + 6000);
  // Two ranks on each of four hosts: halves twice inside, and 6 steps of a quarter of a half between.
  EXPECT_DOUBLE_EQ(estimate(Collective::all_reduce, Pick::hierarchical, {8, 4, 2}, kMillion),
                   4 + 400 + 120 + 3000);
  EXPECT_DOUBLE_EQ(estimate(Collective::all_reduce, Pick::hierarchical, {4, 2, 2}, kMillion),
                   4 + 400 + 20 + 2000);
  EXPECT_DOUBLE_EQ(estimate(Collective::all_reduce, Pick::automatic, Layout::oneHost(1), kMillion), 400);
}

TEST(CostModel, EveryTransportHasACost) {
  for (const char* transport : {"inproc", "shm", "tcp", "verbs", "cuda_ipc", "peer_access", "pinned"}) {
    EXPECT_GT(linkCost(transport).latency_us, 0) << transport;
    EXPECT_GT(linkCost(transport).gbytes_per_s, 0) << transport;
  }
  EXPECT_LT(linkCost("shm").latency_us, linkCost("tcp").latency_us);
  EXPECT_EQ(linkCost("pigeons").latency_us, linkCost("tcp").latency_us);
}

}  // namespace
}  // namespace tutti
