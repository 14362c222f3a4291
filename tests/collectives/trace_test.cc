// Proofs by Trace: for every program, 1 to 64 ranks and sizes around every boundary, each contribution enters
// exactly once, everything is delivered, posts meet awaits, and slots stay within their bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "collectives/planner.h"
#include "collectives/programs.h"
#include "collectives/trace.h"
#include "tests/harness/oracle.h"
#include "tests/harness/sabotage.h"
#include "tests/harness/variants.h"

namespace tutti {
namespace {

constexpr std::uint32_t kSlotBytes = 64;  // 16 elements: small, so that few elements give many chunks
constexpr DataType kType = DataType::float32;

struct Case {
  Collective collective = Collective::all_reduce;
  int nranks = 1;
  std::uint64_t count = 0;
  std::uint32_t lanes = 1;
  std::uint32_t slots = 2;
  int root = 0;
  test::Variant variant = test::kVariants[0];
  int ranks_per_host = 0;  ///< 0: as the variant has it
  RingTables rings = {};

  std::string text() const {
    return fmt::format("{} of {} elements by {}, {} ranks ({} per host), {} lanes, {} slots, root {}",
                       name(collective), count, variant.text, nranks, ranks_per_host, lanes, slots, root);
  }
};

Plan planOf(const Case& c) {
  const Descriptor descriptor{.collective = c.collective, .type = kType, .root = c.root, .count = c.count};
  return makePlan(descriptor,
                  c.ranks_per_host == 0 ? test::layoutFor(c.variant, c.nranks)
                                        : Layout{c.nranks, c.nranks / c.ranks_per_host, c.ranks_per_host},
                  {.lanes = c.lanes, .slot_count = c.slots, .slot_bytes = kSlotBytes, .packet_bytes = 48},
                  c.variant.plan);
}

/// `run(executor, plan, work)` stands for the program; tests of planted bugs pass a broken one.
template <class Run>
Replay traceWith(const Case& c, const Run& run) {
  const Plan plan = planOf(c);
  Traces traces(static_cast<std::size_t>(c.nranks));
  for (int rank = 0; rank < c.nranks; ++rank) {
    for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) {
      TraceExecutor executor;
      EXPECT_TRUE(run(executor, plan, laneWork(plan, rank, lane, c.rings.view())));
      traces[static_cast<std::size_t>(rank)].push_back(executor.events());
    }
  }
  return replay(traces, {.links = meshLinks(c.nranks),
                         .packets = plan.slots == SlotForm::packets,
                         .slot_count = c.slots,
                         .slot_elements = plan.slot_elements,
                         .input_elements = test::inputCount(c.collective, c.nranks, c.count),
                         .output_elements = test::outputCount(c.collective, c.nranks, c.count)});
}

/// What an element must hold in the end, written down from the definition of the collective.
Symbol expected(const Case& c, int rank, std::uint64_t i) {
  const std::uint64_t all = c.nranks == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << c.nranks) - 1;
  switch (c.collective) {
    case Collective::all_reduce:
      return {.own = all, .element = i, .lasts = 1};
    case Collective::reduce:
      if (rank != c.root) return {};
      return {.own = all, .element = i, .lasts = 1};
    case Collective::reduce_scatter:
      return {.own = all, .element = static_cast<std::uint64_t>(rank) * c.count + i, .lasts = 1};
    case Collective::all_gather:
      return {.copied = std::uint64_t{1} << (i / c.count), .element = i % c.count};
    case Collective::broadcast:
      return {.copied = std::uint64_t{1} << c.root, .element = i};
    case Collective::all_to_all:
      return {.copied = std::uint64_t{1} << (i / c.count),
              .element = static_cast<std::uint64_t>(rank) * c.count + i % c.count};
    case Collective::gather:
      if (rank != c.root) return {};
      return {.copied = std::uint64_t{1} << (i / c.count), .element = i % c.count};
    case Collective::scatter:
      return {.copied = std::uint64_t{1} << c.root,
              .element = static_cast<std::uint64_t>(rank) * c.count + i};
  }
  return {};
}

/// "" or the first misfit between replay and definition.
std::string verdict(const Case& c, const Replay& result) {
  if (!result.error.empty()) return result.error;
  if (result.most_outstanding > c.slots) return "more slots outstanding than there are";
  for (int rank = 0; rank < c.nranks; ++rank) {
    const auto& output = result.outputs[static_cast<std::size_t>(rank)];
    for (std::uint64_t i = 0; i < output.size(); ++i) {
      if (!output[i].holdsSame(expected(c, rank, i)))
        return fmt::format("rank {} output {} holds the wrong thing", rank, i);
      // All ranks end with the same bits: not only the same contributions, but the same expression.
      if (c.collective == Collective::all_reduce && output[i].terms != result.outputs[0][i].terms)
        return fmt::format("rank {} output {} was computed in another order than that of rank 0", rank, i);
    }
  }
  return "";
}

std::string prove(const Case& c) {
  const auto run = [](auto& executor, const Plan& plan, const LaneWork& work) {
    return runProgram(executor, plan, work);
  };
  return verdict(c, traceWith(c, run));
}

/// Every Collective, in every way.
class TraceOf : public testing::TestWithParam<std::tuple<int, test::Variant>> {};

TEST_P(TraceOf, OneTo64Ranks) {
  const auto [collective, variant] = GetParam();
  int proofs = 0;
  for (int nranks = 1; nranks <= 64; ++nranks) {
    const auto n = static_cast<std::uint64_t>(nranks);
    // None, fewer than ranks, primes, around one and two slots (16; 12 for packets); where it is cut into a
    // block for every rank, around a round of n slots.
    const bool cuts_into_blocks = collective == static_cast<int>(Collective::all_reduce) ||
                                  collective == static_cast<int>(Collective::reduce);
    for (const std::uint64_t count :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{7}, std::uint64_t{16}, std::uint64_t{17},
          std::uint64_t{53}, cuts_into_blocks ? 16 * n + 1 : 33}) {
      for (const std::uint32_t lanes : {1U, 3U}) {
        // Few rank counts show that lanes are alike, and that sizes are.
        if (nranks > 9 && nranks < 63 && (lanes > 1 || count < 17)) continue;
        if (nranks > 9 && nranks < 63 && nranks % 16 != 0 && variant.between_hosts) continue;
        const Case c{.collective = static_cast<Collective>(collective),
                     .nranks = nranks,
                     .count = count,
                     .lanes = lanes,
                     .slots = variant.between_hosts ? 4U : 2U,
                     .root = static_cast<int>(count % n),
                     .variant = variant};
        ASSERT_EQ(prove(c), "") << c.text();
        ++proofs;
      }
    }
  }
  EXPECT_EQ(proofs, 11 * 7 * 2 + (variant.between_hosts ? 3 : 53) * 3);
}

TEST(TraceHierarchical, EveryLayoutOf2To64Ranks) {
  int proofs = 0;
  for (int nranks = 2; nranks <= 64; ++nranks) {
    for (int ranks_per_host = 1; ranks_per_host <= nranks / 2; ++ranks_per_host) {
      if (nranks % ranks_per_host != 0) continue;
      // None, one, a round and its neighbours (16 elements for each rank of a host), several rounds.
      const auto round = std::uint64_t{64} * static_cast<std::uint64_t>(ranks_per_host);
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, round - 1, round + 1, 3 * round + 1}) {
        if (nranks > 16 && count > 100) continue;
        const Case c{
            .nranks = nranks,
            .count = count,
            .slots = 2 + static_cast<std::uint32_t>(proofs % 6),
            .variant = {{PlanOverride::Pick::hierarchical, PlanOverride::Form::automatic}, "hierarchical"},
            .ranks_per_host = ranks_per_host};
        ASSERT_EQ(prove(c), "") << c.text();
        ASSERT_EQ(planOf(c).algorithm, Algorithm::hierarchical);
        ++proofs;
      }
    }
  }
  EXPECT_GT(proofs, 400);
}

INSTANTIATE_TEST_SUITE_P(EveryProgram, TraceOf,
                         testing::Combine(testing::Range(0, kCollectiveCount),
                                          testing::ValuesIn(test::kVariants)),
                         [](const auto& info) {
                           std::string text(name(static_cast<Collective>(std::get<0>(info.param))));
                           for (const char c : std::string(std::get<1>(info.param).text))
                             text += c == '/' ? '_' : c;
                           return text;
                         });

TEST(TraceRing, AnyOrderOfRanks) {
  std::mt19937_64 random(5);
  int other_ways = 0;
  for (int i = 0; i < 600; ++i) {
    const auto below = [&random](int n) {
      return static_cast<int>(random() % static_cast<std::uint64_t>(n));
    };
    const int nranks = 1 + below(i % 25 == 0 ? 64 : 9);
    Case c{.collective = test::kRingCollectives[below(std::size(test::kRingCollectives))],
           .nranks = nranks,
           .count = static_cast<std::uint64_t>(below(60 * nranks)),
           .lanes = static_cast<std::uint32_t>(1 + below(4)),
           .slots = static_cast<std::uint32_t>(2 + below(3)),
           .root = below(nranks),
           .variant = test::kVariants[i % 2 == 0 ? 0 : 5],
           .rings = RingTables(test::randomOrders(nranks, 1 + below(4), random))};
    ASSERT_EQ(prove(c), "") << c.text();
    // The data goes round the ring in that order, and no other way.
    const Plan plan = planOf(c);
    for (std::uint32_t lane = 0; lane < plan.lanes && nranks > 1; ++lane) {
      const std::uint16_t* order = c.rings.view().of(lane, nranks);
      if (order == nullptr) continue;
      for (int place = 0; place < nranks; ++place) {
        const Ring ring(laneWork(plan, order[place], lane, c.rings.view()));
        EXPECT_EQ(ring.right.index, order[(place + 1) % nranks]);
        EXPECT_EQ(ring.left.index, order[(place + nranks - 1) % nranks]);
        ++other_ways;
      }
    }
  }
  EXPECT_GT(other_ways, 1000);
}

TEST(TraceRing, OrdersAsNumberedCostNothing) {
  EXPECT_EQ(RingTables().view().tables, nullptr);
  EXPECT_EQ(RingTables({{0, 1, 2, 3}}).view().tables, nullptr);
  EXPECT_EQ(RingTables({{2, 3, 0, 1}, {0, 1, 2, 3}}).view().tables, nullptr);  // the same ring
  const RingTables two({{0, 1, 2, 3}, {1, 0, 3, 2}});
  const RingOrders orders = two.view();
  EXPECT_EQ(orders.count, 2U);
  EXPECT_EQ(std::vector<int>(orders.of(3, 4), orders.of(3, 4) + 8), (std::vector{0, 3, 2, 1, 0, 3, 2, 1}));
}

void proveEveryRoot(Case c) {
  for (c.nranks = 1; c.nranks <= 9; ++c.nranks) {
    for (c.root = 0; c.root < c.nranks; ++c.root) EXPECT_EQ(prove(c), "") << c.text();
  }
}

TEST(Trace, EveryRoot) {
  for (const test::Variant& variant : test::kVariants) {
    for (const Collective collective :
         {Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter}) {
      proveEveryRoot({.collective = collective, .count = 100, .variant = variant});
    }
  }
}

TEST(Trace, MoreSlotsGiveTheSameResult) {
  for (const test::Variant& variant : test::kVariants) {
    for (const std::uint32_t slots : {2U, 3U, 8U}) {
      const Case c{.nranks = 5, .count = 1000, .lanes = 2, .slots = slots, .variant = variant};
      EXPECT_EQ(prove(c), "") << c.text();
    }
  }
}

TEST(Trace, OneSlotWouldDeadlock) {
  // Why a link has at least two slots: a ring step holds one while it fills the next.
  const Case c{.nranks = 3, .count = 30, .slots = 1};
  EXPECT_NE(prove(c).find("stands still"), std::string::npos);
}

TEST(Trace, BytesAndStepsAreOptimal) {
  // 2(n-1)/n S elements in 2(n-1) steps per rank (Patarasuk & Yuan 2009), for sizes that divide.
  const Case c{.nranks = 8, .count = std::uint64_t{8} * 16};
  const auto run = [](auto& executor, const Plan& plan, const LaneWork& work) {
    return runProgram(executor, plan, work);
  };
  const Replay result = traceWith(c, run);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(result.sent_elements[rank], 2 * 7 * 16U);
    EXPECT_EQ(result.steps[rank], 2 * 7U);
  }
}

/// Whether the bug, committed once by rank 1 of 3, is found; true when the program gives it no occasion,
/// which `programs` then does not count.
bool isFound(test::Bug bug, Collective collective, const test::Variant& variant, int& programs) {
  // 3 ranks, several rounds, 2 slots.
  const Case c{.collective = collective,
               .nranks = 3,
               .count = 200,
               .root = test::rootForBugs(collective),
               .variant = variant};
  bool committed = false;
  const auto run = [&](auto& executor, const Plan& plan, const LaneWork& work) {
    if (work.rank != 1) return runProgram(executor, plan, work);
    test::Sabotaged sabotaged(executor, bug, bug == test::Bug::missing_drain ? 1 : 2, &committed);
    return runProgram(sabotaged, plan, work);
  };
  const std::string found = verdict(c, traceWith(c, run));
  programs += committed ? 1 : 0;
  return !committed || !found.empty();
}

TEST(Trace, PlantedBugsAreFound) {
  for (const test::Bug bug : test::kAllBugs) {
    // Trace plays events one by one: what a rank does to its own memory meanwhile is Sim's to judge. A loan
    // without result is back when all slots are.
    if (bug == test::Bug::early_reuse) continue;
    int programs = 0;
    for (const test::Variant& variant : test::kVariants) {
      for (const auto collective : {Collective::all_reduce, Collective::reduce_scatter,
                                    Collective::all_to_all, Collective::gather, Collective::scatter}) {
        if (bug == test::Bug::missing_drain && collective != Collective::all_reduce) continue;
        EXPECT_TRUE(isFound(bug, collective, variant, programs))
            << "bug " << static_cast<int>(bug) << " in " << name(collective) << " by " << variant.text;
      }
    }
    EXPECT_GE(programs, 1) << "bug " << static_cast<int>(bug) << " had no occasion";
  }
}

TEST(Planner, RingsAreAvoidedWhereThereIsAnotherWay) {
  const Descriptor large{.count = 16 << 20};
  const LinkShape shape = fitShape({}, 1);
  const PlanOverride no_ring{.algorithm = PlanOverride::Pick::not_ring};
  const Layout three_hosts{.nranks = 3, .hosts = 3, .ranks_per_host = 1};
  EXPECT_EQ(makePlan(large, three_hosts, shape).algorithm, Algorithm::ring);
  EXPECT_EQ(makePlan(large, three_hosts, shape, no_ring).algorithm, Algorithm::direct);
  const Layout many = Layout::oneHost(kMaxMeshRanks + 1);
  EXPECT_EQ(makePlan(large, many, shape, no_ring).algorithm, Algorithm::ring);
}

TEST(Planner, RoundsOverlapWhereThatPays) {
  const LinkShape shape = fitShape({.slot_count = 4, .packet_bytes = 8192}, 4);
  LinkShape on_gpu = shape;
  on_gpu.on_gpu = true;
  const Descriptor exchange{.collective = Collective::all_to_all, .count = 1 << 20};
  const Descriptor reduction{.collective = Collective::all_reduce, .count = 1 << 20};
  EXPECT_EQ(makePlan(exchange, Layout::oneHost(4), shape).depth, 3U);
  EXPECT_EQ(makePlan(exchange, Layout::oneHost(4), on_gpu).depth, 1U);
  EXPECT_EQ(makePlan(reduction, Layout::oneHost(4), shape).depth, 1U);
  EXPECT_EQ(makePlan(reduction, Layout{4, 2, 2}, shape).depth, 3U);
  // Packets are acknowledged by those that come back.
  const Descriptor small{.collective = Collective::all_to_all, .count = 8};
  const Plan by_packets = makePlan(small, Layout::oneHost(4), shape);
  EXPECT_EQ(by_packets.slots, SlotForm::packets);
  EXPECT_EQ(by_packets.depth, 1U);
}

TEST(Planner, SlotsMayBeBounded) {
  EXPECT_EQ(fitShape({.most_slot_bytes = 16 << 10}, 2).slot_bytes, 16U << 10);
  EXPECT_EQ(fitShape({.most_slot_bytes = 256 << 10}, 2).slot_bytes, 256U << 10);
  EXPECT_EQ(fitShape({.slot_bytes = 4096, .most_slot_bytes = 1024}, 2).slot_bytes, 4096U);  // picked by hand
}

TEST(Planner, LanesPartitionTheOperation) {
  for (const std::uint64_t count : {0ULL, 1ULL, 15ULL, 16ULL, 17ULL, 1000ULL, 1048577ULL}) {
    for (const std::uint32_t lanes : {1U, 2U, 3U, 16U}) {
      const Plan plan = planOf({.nranks = 4, .count = count, .lanes = lanes});
      std::uint64_t at = 0;
      for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) {
        const LaneWork work = laneWork(plan, 2, lane);
        EXPECT_EQ(work.begin, at);
        EXPECT_LE(work.begin, work.end);
        at = work.end;
      }
      EXPECT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace tutti
