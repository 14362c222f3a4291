// The shape of references, proved in Sim: zero-copy reads of a peer's input, direct writes into a peer's
// output, and that both are refused when memory comes back to its user too early.
#include <gtest/gtest.h>

#include "collectives/planner.h"
#include "kernels/sim/sim.h"
#include "tests/harness/oracle.h"

namespace tutti {
namespace {

constexpr std::uint64_t kCount = 40;  // more than a slot of 16 holds: references are not bound to slots
constexpr DataType kType = DataType::float32;

/// Two ranks with a link each way.
std::vector<LinkEnds> pairLinks() { return {{0, 0, 1, 0}, {1, 0, 0, 0}}; }

struct Pair {
  explicit Pair(std::uint64_t seed)
      : plan(makePlan({.type = kType, .count = kCount}, 2, {.slot_count = 2, .slot_bytes = 64})),
        sim(plan, {.links = pairLinks(),
                   .slot_count = 2,
                   .seed = seed,
                   .input_bytes = kCount * sizeof(float),
                   .output_bytes = kCount * sizeof(float)}) {
    for (int rank = 0; rank < 2; ++rank) {
      for (std::uint64_t i = 0; i < kCount; ++i) {
        test::encode(kType, sim.input(rank) + i * sizeof(float), test::inputValue(seed, rank, i));
      }
    }
  }
  Plan plan;
  Sim sim;
};

void expectSums(Pair& pair, std::uint64_t seed) {
  for (int rank = 0; rank < 2; ++rank) {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(test::decode(kType, pair.sim.output(rank) + i * sizeof(float)),
                test::reducedValue(seed, 2, kType, RedOp::sum, i))
          << "rank " << rank << " element " << i << " seed " << seed;
    }
  }
}

constexpr Inbound kIn{0};
constexpr Outbound kOut{0};

/// All-reduce of two: each lends its input, reads the other's in place, and drains.
bool exchangeByReference(SimExecutor& exec) {
  if (!exec.reserve(kOut)) return false;
  exec.post(kOut, kCount, input(0));
  if (!exec.await(kIn)) return false;
  const bool is_first = exec.rank() == 0;  // the same order on both ranks
  const Operand mine = input(0).own();
  if (!(is_first ? exec.combine({output(0)}, {mine, slot(kIn)}, kCount, Last::yes)
                 : exec.combine({output(0)}, {slot(kIn), mine}, kCount, Last::yes))) {
    return false;
  }
  exec.release(kIn);
  return exec.drain(kOut);
}

/// Direct writes: each lends its output on the reverse link; the peer copies its input straight into it.
bool writeDirectly(SimExecutor& exec) {
  if (!exec.reserve(kOut)) return false;
  exec.post(kOut, kCount, output(0));
  if (!exec.await(kIn) || !exec.combine({slot(kIn)}, {input(0)}, kCount, Last::no)) return false;
  exec.release(kIn);
  return exec.drain(kOut);
}

TEST(SimReference, ReadsOfAPeersInput) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Pair pair(seed);
    ASSERT_EQ(pair.sim.run(exchangeByReference), "");
    expectSums(pair, seed);
  }
}

TEST(SimReference, DirectWritesIntoAPeersOutput) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Pair pair(seed);
    ASSERT_EQ(pair.sim.run(writeDirectly), "");
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(test::decode(kType, pair.sim.output(1) + i * sizeof(float)), test::inputValue(seed, 0, i))
          << seed;
    }
  }
}

TEST(SimReference, MissingDrainIsFound) {
  Pair pair(1);
  const std::string report = pair.sim.run([](SimExecutor& exec) {
    if (!exec.reserve(kOut)) return false;
    exec.post(kOut, kCount, input(0));
    if (!exec.await(kIn) || !exec.combine({output(0)}, {slot(kIn)}, kCount, Last::no)) return false;
    exec.release(kIn);
    return true;
  });
  EXPECT_NE(report.find("without draining reference 0"), std::string::npos) << report;
}

TEST(SimReference, WritingLentInputIsFound) {
  // In place: the output is the lent input.
  const Plan plan = makePlan({.type = kType, .count = kCount}, 2, {.slot_count = 2, .slot_bytes = 64});
  Sim sim(plan, {.links = pairLinks(),
                 .slot_count = 2,
                 .seed = 3,
                 .input_bytes = kCount * sizeof(float),
                 .output_bytes = kCount * sizeof(float),
                 .in_place = true});
  const std::string report = sim.run(exchangeByReference);
  EXPECT_NE(report.find("writes memory that it lent to rank"), std::string::npos) << report;
}

TEST(SimReference, ReadingOutputThatAPeerMayWriteIsFound) {
  Pair pair(4);
  const std::string report = pair.sim.run([](SimExecutor& exec) {
    if (!exec.reserve(kOut)) return false;
    exec.post(kOut, kCount, output(0));
    // Reads its own output without waiting for the peer's release.
    if (!exec.reserve(kOut) || !exec.combine({slot(kOut)}, {output(0)}, 1, Last::no)) return false;
    exec.post(kOut, 1);
    return exec.drain(kOut);
  });
  EXPECT_NE(report.find("reads memory that it lent to rank"), std::string::npos) << report;
}

TEST(SimReference, UseAfterReleaseIsFound) {
  Pair pair(5);
  const std::string report = pair.sim.run([](SimExecutor& exec) {
    if (!exec.reserve(kOut)) return false;
    exec.post(kOut, kCount, input(0));
    if (!exec.await(kIn)) return false;
    exec.release(kIn);
    return exec.combine({output(0)}, {slot(kIn)}, kCount, Last::no) && exec.drain(kOut);
  });
  EXPECT_NE(report.find("without holding it"), std::string::npos) << report;
}

}  // namespace
}  // namespace tutti
