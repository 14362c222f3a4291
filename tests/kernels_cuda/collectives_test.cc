// Collectives by kernels against the same programs on the host (kernels/sim), bit by bit, over random bits:
// every collective, program and type, with slots inline, by address and by region.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "collectives/planner.h"
#include "collectives/programs.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/sim/sim.h"
#include "tests/harness/oracle.h"
#include "tests/harness/variants.h"
#include "tests/kernels/combine_oracle.h"
#include "tests/kernels_cuda/cuda_world.h"

namespace tutti::test {
namespace {

/// How loans go.
enum class Loans : std::uint8_t { inline_data, address, region };

struct Scenario {
  Descriptor descriptor;
  int nranks = 1;
  Variant variant = kVariants[0];
  LinkShape shape{.lanes = 1, .slot_count = 2, .slot_bytes = 512, .packet_bytes = 4096};
  Loans loans = Loans::inline_data;
  bool in_place = false;

  std::string text() const {
    return fmt::format("{} on {} ranks by {}, {} lanes, {} slots, loans {}{}", describe(descriptor), nranks,
                       variant.text, shape.lanes, shape.slot_count, static_cast<int>(loans),
                       in_place ? ", in place" : "");
  }
  std::size_t inputBytes() const {
    return inputCount(descriptor.collective, nranks, descriptor.count) * sizeOf(descriptor.type);
  }
  std::size_t outputBytes() const {
    return outputCount(descriptor.collective, nranks, descriptor.count) * sizeOf(descriptor.type);
  }
};

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
  return s;
}

/// The ranks' buffers on the GPU, and what the host makes of the same inputs.
class Comparison {
 public:
  Comparison(const Scenario& scenario, std::mt19937_64& random)
      : scenario_(scenario),
        plan_(makePlan(scenario.descriptor, layoutFor(scenario.variant, scenario.nranks), scenario.shape,
                       scenario.variant.plan)),
        sim_(plan_, options(random)) {
    const Descriptor& d = scenario.descriptor;
    for (int r = 0; r < scenario.nranks; ++r) {
      const std::size_t size = sizeOf(d.type);
      for (std::size_t at = 0; at < scenario.inputBytes(); at += size) {
        const std::uint64_t bits = drawBits(d.type, Draw::mixed, random);
        std::memcpy(sim_.input(r) + at, &bits, size);
      }
      const bool is_shifted = random() % 2 == 0;
      const std::size_t shift = is_shifted ? size * (random() % 4) : 0;
      inputs_.push_back(std::make_unique<PinnedMemory>(scenario.inputBytes() + 64));
      outputs_.push_back(std::make_unique<PinnedMemory>(scenario.outputBytes() + 64));
      std::memcpy(inputs_.back()->data() + shift, sim_.input(r), scenario.inputBytes());
      shifts_.push_back(shift);
    }
  }

  std::vector<CudaTask> tasks() const {
    std::vector<CudaTask> tasks;
    for (int r = 0; r < scenario_.nranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      std::byte* in = inputs_[i]->data() + shifts_[i];
      CudaTask task = collectiveTask(plan_, in, scenario_.in_place ? in : outputs_[i]->data() + shifts_[i]);
      task.scale = scales_[i];
      if (scenario_.loans == Loans::address) task.lends_address = ~std::uint64_t{0};
      if (scenario_.loans == Loans::region) task.lends_region = ~std::uint64_t{0};
      task.input_region = {kInputRegion, shifts_[i]};
      task.output_region = scenario_.in_place ? task.input_region : RegionPlace{kOutputRegion, shifts_[i]};
      tasks.push_back(task);
    }
    return tasks;
  }

  /// Tells every rank where the others' buffers are.
  void mapRegions(CudaWorld& world) const {
    for (int r = 0; r < scenario_.nranks; ++r) {
      for (int peer = 0; peer < scenario_.nranks; ++peer) {
        const auto i = static_cast<std::size_t>(peer);
        map(world.regions(r, peer), kInputRegion, *inputs_[i], scenario_.inputBytes() + 64);
        map(world.regions(r, peer), kOutputRegion, *outputs_[i], scenario_.outputBytes() + 64);
      }
    }
  }

  /// "" or what differs.
  std::string result() {
    const std::string report =
        sim_.run([&](SimExecutor& e) { return runProgram(e, plan_, laneWork(plan_, e.rank(), e.lane())); });
    if (!report.empty()) return report;
    const Descriptor& d = scenario_.descriptor;
    for (int r = 0; r < scenario_.nranks; ++r) {
      if (d.collective == Collective::reduce && r != d.root) continue;
      const auto i = static_cast<std::size_t>(r);
      const std::byte* got = (scenario_.in_place ? inputs_ : outputs_)[i]->data() + shifts_[i];
      for (std::size_t at = 0; at < scenario_.outputBytes(); ++at) {
        if (got[at] == sim_.output(r)[at]) continue;
        return fmt::format("rank {} byte {}: {:02x} instead of {:02x}", r, at, static_cast<int>(got[at]),
                           static_cast<int>(sim_.output(r)[at]));
      }
    }
    return "";
  }

 private:
  static constexpr std::uint32_t kInputRegion = 7;
  static constexpr std::uint32_t kOutputRegion = 70;  // another entry of the table

  SimOptions options(std::mt19937_64& random) {
    for (int r = 0; r < scenario_.nranks; ++r)
      scales_.push_back(drawScale(scenario_.descriptor.type, random));
    return {.links = meshLinks(scenario_.nranks),
            .slot_count = scenario_.shape.slot_count,
            .seed = 1,
            .input_bytes = scenario_.inputBytes(),
            .output_bytes = scenario_.outputBytes(),
            .scales = scales_,
            .in_place = scenario_.in_place};
  }

  static void map(CudaRegions& regions, std::uint32_t number, const PinnedMemory& memory, std::size_t bytes) {
    CudaRegion& region = regions.entries[number % RegionTable::kSize];
    region.base = memory.data();
    region.bytes = bytes;
    region.number.store(number);
  }

  Scenario scenario_;
  Plan plan_;
  std::vector<Scale> scales_;
  Sim sim_;
  std::vector<std::unique_ptr<PinnedMemory>> inputs_;
  std::vector<std::unique_ptr<PinnedMemory>> outputs_;
  std::vector<std::size_t> shifts_;
};

std::string faultOf(const CudaWorld& world) {
  for (int r = 0; r < world.nranks(); ++r) {
    const CudaFault& fault = world.control(r).fault;
    if (fault.kind.load() == 0) continue;
    return fmt::format("rank {}: fault {} of peer {}, sequence {}, expected {}", r, fault.kind.load(),
                       fault.peer, fault.sequence, fault.expected);
  }
  return "";
}

class CudaCollectives : public testing::TestWithParam<DataType> {};

TEST_P(CudaCollectives, HaveTheBitsOfTheHost) {
  std::mt19937_64 random(100 + static_cast<std::uint64_t>(GetParam()));
  for (int i = 0; i < 60; ++i) {
    const Scenario s = scenarioOf(random, GetParam());
    SCOPED_TRACE(fmt::format("{}: {}", i, s.text()));
    Comparison comparison(s, random);
    CudaWorld world(s.nranks, s.shape);
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
      lists.push_back(std::make_unique<PinnedMemory>(2 * kTimes * sizeof(CudaTask) + 64));
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
