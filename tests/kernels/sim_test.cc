// Interleavings: every program under thousands of seeds, with values checked; and broken programs, which must
// be found.
#include "kernels/sim/sim.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "collectives/planner.h"
#include "collectives/programs.h"
#include "tests/harness/oracle.h"
#include "tests/harness/sabotage.h"
#include "tests/harness/variants.h"

namespace tutti {
namespace {

/// How many seeds, and the first: TUTTI_SIM_SEEDS, TUTTI_SIM_FIRST_SEED. A failure prints its seed.
std::uint64_t fromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Scenario {
  Descriptor descriptor;
  int nranks = 1;
  LinkShape shape;
  bool in_place = false;
  test::Variant variant = test::kVariants[0];
  RingTables rings = {};

  std::string text() const {
    return fmt::format("{} on {} ranks by {}, {} lanes, {} slots of {} bytes{}", describe(descriptor), nranks,
                       variant.text, shape.lanes, shape.slot_count, shape.slot_bytes,
                       in_place ? ", in place" : "");
  }
};

Scenario scenarioOf(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  Scenario s;
  s.nranks = static_cast<int>(1 + below(8));
  s.shape = {.lanes = static_cast<std::uint32_t>(1 + below(3)),
             .slot_count = static_cast<std::uint32_t>(2 + below(3)),
             .slot_bytes = 64,
             .packet_bytes = 48};
  s.variant = test::kVariants[below(std::size(test::kVariants))];
  s.descriptor.collective = static_cast<Collective>(below(kCollectiveCount));
  s.descriptor.type = static_cast<DataType>(below(kDataTypeCount));
  s.descriptor.op =
      isReduction(s.descriptor.collective) ? static_cast<RedOp>(below(kAllRedOpCount)) : RedOp::sum;
  s.descriptor.root = static_cast<int>(below(static_cast<std::uint64_t>(s.nranks)));
  s.descriptor.count = below(4) == 0 ? below(8) : below(400);
  s.in_place = below(2) == 0;
  if (below(2) == 0)
    s.rings = RingTables(test::randomOrders(s.nranks, static_cast<int>(1 + below(3)), random));
  return s;
}

/// The scalars of premul_sum.
std::vector<Scale> scalesOf(const Scenario& s) {
  std::vector<Scale> scales;
  for (int rank = 0; rank < s.nranks; ++rank) {
    std::byte scalar[8] = {};
    test::encode(s.descriptor.type, scalar, test::premulScalar(rank));
    scales.push_back(scaleFrom(s.descriptor.type, scalar));
  }
  return scales;
}

std::unique_ptr<Sim> makeSim(const Scenario& s, const Plan& plan, std::uint64_t seed) {
  const std::size_t size = sizeOf(s.descriptor.type);
  const auto offset = [d = s.descriptor, size](int rank) {
    return test::inPlaceOffset(d.collective, rank, d.count) * size;
  };
  auto sim = std::make_unique<Sim>(
      plan,
      SimOptions{
          .links = meshLinks(s.nranks),
          .slot_count = s.shape.slot_count,
          .seed = seed,
          .input_bytes = test::inputCount(s.descriptor.collective, s.nranks, s.descriptor.count) * size,
          .output_bytes = test::outputCount(s.descriptor.collective, s.nranks, s.descriptor.count) * size,
          .scales = scalesOf(s),
          .in_place = s.in_place,
          .in_place_offset = offset});
  for (int rank = 0; rank < s.nranks; ++rank) {
    const std::uint64_t n = test::inputCount(s.descriptor.collective, s.nranks, s.descriptor.count);
    // In place, ranks other than the root of a broadcast or scatter have no input of their own; theirs is
    // overwritten, which is harmless here.
    for (std::uint64_t i = 0; i < n; ++i) {
      test::encode(s.descriptor.type, sim->input(rank) + i * size,
                   test::inputValue(seed, rank, i, s.descriptor.type, s.descriptor.op));
    }
  }
  return sim;
}

std::string checkValues(const Scenario& s, Sim& sim, std::uint64_t seed) {
  const Descriptor& d = s.descriptor;
  const std::size_t size = sizeOf(d.type);
  const std::uint64_t n = test::outputCount(d.collective, s.nranks, d.count);
  for (int rank = 0; rank < s.nranks; ++rank) {
    if (test::onlyRootReceives(d.collective) && rank != d.root) continue;
    for (std::uint64_t i = 0; i < n; ++i) {
      const double want = test::expectedValue(seed, s.nranks, rank, d, i);
      const double got = test::decode(d.type, sim.output(rank) + i * size);
      if (!(std::abs(got - want) <= test::tolerance(d.type, d.op, s.nranks))) {
        return fmt::format("rank {} element {}: expected {}, got {} [seed {}]", rank, i, want, got, seed);
      }
    }
    const bool is_alike = d.collective == Collective::all_reduce || d.collective == Collective::all_gather ||
                          d.collective == Collective::broadcast;
    if (is_alike && n > 0 && std::memcmp(sim.output(rank), sim.output(0), n * size) != 0) {
      return fmt::format("ranks 0 and {} ended with different bits [seed {}]", rank, seed);
    }
  }
  return "";
}

/// "" or what went wrong. `run(executor, plan, work)` stands for the program.
template <class Run>
std::string simulate(const Scenario& s, std::uint64_t seed, const Run& run) {
  const Plan plan = makePlan(s.descriptor, test::layoutFor(s.variant, s.nranks), s.shape, s.variant.plan);
  const auto sim = makeSim(s, plan, seed);
  const std::string report = sim->run([&](SimExecutor& executor) {
    return run(executor, plan, laneWork(plan, executor.rank(), executor.lane(), s.rings.view()));
  });
  return report.empty() ? checkValues(s, *sim, seed) : report;
}

const auto kProgram = [](auto& executor, const Plan& plan, const LaneWork& work) {
  return runProgram(executor, plan, work);
};

TEST(Sim, InterleavingsGiveTheRightValues) {
  const std::uint64_t seeds = fromEnvironment("TUTTI_SIM_SEEDS", 10'000);
  const std::uint64_t first = fromEnvironment("TUTTI_SIM_FIRST_SEED", 1);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Scenario s = scenarioOf(seed);
    ASSERT_EQ(simulate(s, seed, kProgram), "") << s.text();
  }
}

TEST(Sim, SameSeedSameRun) {
  const Scenario s{
      .descriptor = {.count = 300}, .nranks = 4, .shape = {.lanes = 2, .slot_count = 2, .slot_bytes = 64}};
  std::uint64_t decisions[2];
  for (auto& count : decisions) {
    const Plan plan = makePlan(s.descriptor, test::layoutFor(s.variant, s.nranks), s.shape, s.variant.plan);
    const auto sim = makeSim(s, plan, 99);
    EXPECT_EQ(
        sim->run([&](SimExecutor& e) { return runProgram(e, plan, laneWork(plan, e.rank(), e.lane())); }),
        "");
    count = sim->decisions();
  }
  EXPECT_EQ(decisions[0], decisions[1]);
}

TEST(Sim, DeadlockSaysWhoWaitsForWhom) {
  // One slot is not enough for a ring of three: everyone holds its slot and waits for the next.
  const Scenario s{.descriptor = {.count = 30}, .nranks = 3, .shape = {.slot_count = 1, .slot_bytes = 64}};
  const std::string report = simulate(s, 5, kProgram);
  EXPECT_NE(
      report.find("deadlock: rank 0 lane 0 reserves a slot to rank 1: posted = 1, released = 0 of 1 slots"),
      std::string::npos)
      << report;
  EXPECT_NE(report.find("[seed 5]"), std::string::npos) << report;
}

TEST(Sim, AbsentRankIsNamedByItsNeighbour) {
  const Scenario s{.descriptor = {.count = 30}, .nranks = 3, .shape = {.slot_count = 2, .slot_bytes = 64}};
  const auto run = [](auto& executor, const Plan& plan, const LaneWork& work) {
    return work.rank == 1 || runProgram(executor, plan, work);
  };
  const std::string report = simulate(s, 6, run);
  EXPECT_NE(report.find("rank 2 lane 0 awaits rank 1: posted = 0"), std::string::npos) << report;
}

/// In how many of 50 interleavings the bug, committed once by rank 1 of 3, is found; -1 when the program
/// gives it no occasion.
int timesFound(test::Bug bug, Collective collective, const test::Variant& variant) {
  const Scenario s{
      .descriptor = {.collective = collective, .root = test::rootForBugs(collective), .count = 200},
      .nranks = 3,
      .shape = {.slot_count = 2, .slot_bytes = 64, .packet_bytes = 48},
      .variant = variant};
  bool committed = false;
  const auto run = [&](auto& executor, const Plan& plan, const LaneWork& work) {
    if (work.rank != 1) return runProgram(executor, plan, work);
    // The second occasion where there is one per operation and peer only, else the third.
    test::Sabotaged sabotaged(executor, bug, bug == test::Bug::missing_drain ? 1 : 2, &committed);
    return runProgram(sabotaged, plan, work);
  };
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) found += simulate(s, seed, run).empty() ? 0 : 1;
  return committed ? found : -1;
}

TEST(Sim, PlantedBugsAreFound) {
  for (const test::Bug bug : test::kAllBugs) {
    int programs = 0;
    for (const test::Variant& variant : test::kVariants) {
      for (const auto collective : {Collective::all_reduce, Collective::reduce_scatter,
                                    Collective::all_to_all, Collective::gather, Collective::scatter}) {
        // What packets carry need not come back.
        if (bug == test::Bug::missing_drain && variant.plan.slots == PlanOverride::Form::packets) continue;
        const int found = timesFound(bug, collective, variant);
        if (found < 0) continue;
        ++programs;
        // The value check sees a wrong chunk only where the neighbouring numbers differ; a missing drain
        // shows only where a loan was still out or must bring a result home; ownership errors never hide.
        EXPECT_GE(found, bug == test::Bug::missing_drain ? 25 : 48)
            << "bug " << static_cast<int>(bug) << " in " << name(collective) << " by " << variant.text;
      }
    }
    EXPECT_GE(programs, 1) << "bug " << static_cast<int>(bug) << " had no occasion";
  }
}

}  // namespace
}  // namespace tutti
