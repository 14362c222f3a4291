// Collectives by kernels against the same programs on the host (kernels/sim), bit by bit, over random bits:
// every collective, program and type, with slots inline, by address and by region.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/cuda/cuda_kernels.h"
#include "tests/kernels_cuda/comparison.h"

namespace tutti::test {
namespace {

Scenario scenarioOf(std::mt19937_64& random, DataType type) {
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  Scenario s;
  s.nranks = static_cast<int>(1 + below(4));
  s.shape.lanes = static_cast<std::uint32_t>(1 + below(2));
  s.shape.slot_count = static_cast<std::uint32_t>(2 + below(3));
  s.variant = kVariants[below(std::size(kVariants))];
  s.loans = static_cast<Loans>(below(3));
  s.descriptor.collective = static_cast<Collective>(below(kCollectiveCount));
  s.descriptor.type = type;
  if (isReduction(s.descriptor.collective)) s.descriptor.op = static_cast<RedOp>(below(kAllRedOpCount));
  s.descriptor.root = static_cast<int>(below(static_cast<std::uint64_t>(s.nranks)));
  s.descriptor.count = below(4) == 0 ? below(8) : below(2000);
  // Of blocks one rank's input is another's output then: which bits are lost depends on the order of things.
  s.in_place = s.descriptor.collective == Collective::all_reduce && below(2) == 0;
  if (s.descriptor.collective == Collective::all_to_all && s.loans == Loans::inline_data) {
    s.in_place = below(2) == 0;  // see mayReferInPlace
  }
  if (below(2) == 0) s.rings = RingTables(randomOrders(s.nranks, static_cast<int>(1 + below(3)), random));
  return s;
}

class CudaCollectives : public testing::TestWithParam<DataType> {};

TEST_P(CudaCollectives, HaveTheBitsOfTheHost) {
  std::mt19937_64 random(100 + static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 60; ++i) {
    const Scenario s = scenarioOf(random, GetParam());
    SCOPED_TRACE(fmt::format("{}: {}", i, s.text()));
    Comparison comparison(s, random);
    CudaWorld world(s.nranks, s.shape);
    world.setRings(s.rings);
    comparison.mapRegions(world);
    world.run(comparison.tasks());
    ASSERT_EQ(faultOf(world), "");
    ASSERT_EQ(comparison.result(), "");
    for (int r = 0; r < s.nranks; ++r) {
      EXPECT_EQ(world.control(r).finished.load(), 1U);
      EXPECT_EQ(world.control(r).operations.load(), 1U);
      EXPECT_EQ(world.status(r).completed.load(), 1U);
      Descriptor entered;
      ASSERT_TRUE(world.status(r).readDescriptor(1, entered));
      EXPECT_EQ(entered, s.descriptor);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaCollectives,
                         testing::Values(DataType::int8, DataType::uint8, DataType::int32, DataType::uint32,
                                         DataType::int64, DataType::uint64, DataType::float16,
                                         DataType::float32, DataType::float64, DataType::bfloat16,
                                         DataType::float8e4m3, DataType::float8e5m2),
                         [](const auto& param) { return std::string(name(param.param)); });

/// Many operations one after the other on the same links, of all kinds: what one leaves behind is met by the
/// next.
TEST(CudaCollectiveSequence, LinksSurviveTheirOperations) {
  std::mt19937_64 random(7);
  constexpr LinkShape kShape{.lanes = 2, .slot_count = 3, .slot_bytes = 512, .packet_bytes = 4096};
  CudaWorld world(3, kShape);
  for (int i = 0; i < 60; ++i) {
    Scenario s = scenarioOf(random, DataType::float32);
    s.nranks = 3;
    s.shape = kShape;
    s.descriptor.root %= 3;
    s.rings = RingTables(randomOrders(3, 2, random));
    world.setRings(s.rings);
    SCOPED_TRACE(fmt::format("{}: {}", i, s.text()));
    Comparison comparison(s, random);
    comparison.mapRegions(world);
    world.run(comparison.tasks());
    ASSERT_EQ(faultOf(world), "");
    ASSERT_EQ(comparison.result(), "");
  }
}

/// Transfers: each rank sends to its right neighbour and receives from its left one, several times, in one
/// launch.
TEST(CudaTransfers, BringTheBytes) {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kBytes = 5003;
  constexpr std::uint32_t kTimes = 3;
  constexpr LinkShape kShape{.lanes = 1, .slot_count = 2, .slot_bytes = 512, .packet_bytes = 0};
  for (const bool by_address : {false, true}) {
    CudaWorld world(kRanks, kShape);
    const Plan plan = makePointToPointPlan(transferDescriptor(kBytes), kRanks, kShape);
    std::vector<std::unique_ptr<PinnedMemory>> sent;
    std::vector<std::unique_ptr<PinnedMemory>> received;
    std::vector<std::unique_ptr<PinnedMemory>> lists;
    for (int r = 0; r < kRanks; ++r) {
      sent.push_back(std::make_unique<PinnedMemory>(kBytes * kTimes));
      received.push_back(std::make_unique<PinnedMemory>(kBytes * kTimes));
      lists.push_back(std::make_unique<PinnedMemory>(std::size_t{2} * kTimes * sizeof(CudaTask) + 64));
      for (std::uint64_t i = 0; i < kBytes * kTimes; ++i)
        sent.back()->data()[i] = static_cast<std::byte>(i * 31 + i / 251 + static_cast<std::uint64_t>(r));
      auto* first = lists.back()->as<std::uint32_t>();
      first[1] = kTimes;
      first[2] = 2 * kTimes;
      auto* tasks = reinterpret_cast<CudaTask*>(lists.back()->data() + 64);
      for (std::uint32_t k = 0; k < kTimes; ++k) {
        CudaTask task = collectiveTask(plan, sent.back()->data() + k * kBytes, nullptr);
        task.kind = CudaTask::Kind::send;
        task.peer = (r + 1) % kRanks;
        task.lends_address = by_address ? ~std::uint64_t{0} : 0;
        tasks[k] = task;
        task.kind = CudaTask::Kind::receive;
        task.peer = (r + kRanks - 1) % kRanks;
        task.output = received.back()->data() + k * kBytes;
        tasks[kTimes + k] = task;
      }
      checkCuda(launchTransfers({world.rank(r), tasks, first}, 2, kBytes, world.stream(r)), "a launch");
    }
    for (int r = 0; r < kRanks; ++r) world.wait(r);
    ASSERT_EQ(faultOf(world), "");
    for (std::size_t r = 0; r < kRanks; ++r) {
      const std::size_t left = (r + kRanks - 1) % kRanks;
      EXPECT_EQ(std::memcmp(received[r]->data(), sent[left]->data(), kBytes * kTimes), 0) << "rank " << r;
      EXPECT_EQ(world.control(static_cast<int>(r)).slots.load(), kTimes * ((kBytes + 511) / 512));
      EXPECT_EQ(world.control(static_cast<int>(r)).operations.load(), 0U);
    }
  }
}

}  // namespace
}  // namespace tutti::test
