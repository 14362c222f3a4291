// For ThreadSanitizer: every program with slots of every form, by kernels that nothing orders but their
// links. Each rank has two operations under way, so that one meets what the other leaves. Blocks have at most
// 64 threads. Without ThreadSanitizer these are just more comparisons.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels_cuda/comparison.h"

namespace tutti::test {
namespace {

constexpr LinkShape kShape{.lanes = 1, .slot_count = 2, .slot_bytes = 256, .packet_bytes = 4096};

bool isPackets(const Variant& variant) { return variant.plan.slots == PlanOverride::Form::packets; }

/// As much as 64 threads are started for: a few slots; or a few words of packets for each of half of them.
std::uint64_t countFor(const Variant& variant, const Descriptor& d, int nranks) {
  const std::uint64_t elements = (isPackets(variant) ? 251 : 1019) / sizeOf(d.type);
  const bool in_blocks = hasInputBlocks(d.collective) || hasOutputBlocks(d.collective);
  return in_blocks ? elements / static_cast<std::uint64_t>(nranks) : elements;
}

void expectHostsBits(CudaWorld& world, const Scenario& scenario, std::mt19937_64& random) {
  SCOPED_TRACE(scenario.text());
  Comparison comparison(scenario, random);
  comparison.mapRegions(world);
  for (int k = 0; k < 2; ++k) {
    for (int r = 0; r < world.nranks(); ++r) world.launch(r, comparison.tasks()[static_cast<std::size_t>(r)]);
  }
  for (int r = 0; r < world.nranks(); ++r) world.wait(r);
  ASSERT_EQ(faultOf(world), "");
  ASSERT_EQ(comparison.result(), "");
}

class CudaRaces : public testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(All, CudaRaces, testing::ValuesIn(kVariants), [](const auto& tested) {
  std::string name = tested.param.text;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

TEST_P(CudaRaces, ThereAreNone) {
  std::mt19937_64 random(3);
  const Variant& variant = GetParam();
  CudaWorld world(variant.between_hosts ? 4 : 3, kShape);
  // Packets hold one, two or four elements per pair of words; all else goes by bytes.
  const std::vector<DataType> types = isPackets(variant)
                                          ? std::vector{DataType::float32, DataType::int8, DataType::float64}
                                          : std::vector{DataType::float32};
  for (int c = 0; c < kCollectiveCount; ++c) {
    for (const DataType type : types) {
      for (const Loans loans : {Loans::inline_data, Loans::address, Loans::region}) {
        if (isPackets(variant) && loans != Loans::inline_data) continue;
        Scenario s{.nranks = world.nranks(), .variant = variant, .shape = kShape, .loans = loans};
        s.descriptor = {.collective = static_cast<Collective>(c), .type = type, .root = 1};
        s.descriptor.count = countFor(variant, s.descriptor, s.nranks);
        ASSERT_NO_FATAL_FAILURE(expectHostsBits(world, s, random));
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
