// Packets are relaxed words, so that a wrong one is no race, but wrong data: a flag that two messages of a
// slot share must show in the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collectives/planner.h"
#include "kernels/cuda/cuda_kernels.h"
#include "tests/kernels_cuda/cuda_world.h"
#include "tests/kernels_cuda/planted/planted.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kCount = 24;
constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);
constexpr LinkShape kShape{.lanes = 1, .slot_count = 2, .slot_bytes = 512, .packet_bytes = 4096};

using Launch = cudaError_t (*)(const CudaCollectiveArgs&, cudaStream_t);

cudaError_t launchPlanted(const CudaCollectiveArgs& args, cudaStream_t stream) {
  CudaCollectiveArgs copy = args;
  void* arguments[] = {&copy};
  return cudaLaunchKernel(reinterpret_cast<const void*>(plantedReusedFlag), dim3(1), dim3(64), arguments, 0,
                          stream);
}

/// Sums on two ranks until every slot is used for the second time. What rank 0 has of the last one.
std::vector<std::uint32_t> lastResult(Launch launch) {
  constexpr std::uint32_t kOperations = kPacketSlots + 1;
  CudaWorld world(2, kShape);
  const Descriptor d{
      .collective = Collective::all_reduce, .type = DataType::uint32, .op = RedOp::sum, .count = kCount};
  const Plan plan =
      makePlan(d, Layout::oneHost(2), kShape, {PlanOverride::Pick::automatic, PlanOverride::Form::packets});
  std::vector<std::uint32_t> last;
  for (std::uint32_t k = 1; k <= kOperations; ++k) {
    PinnedMemory inputs[2] = {PinnedMemory(kBytes), PinnedMemory(kBytes)};
    PinnedMemory outputs[2] = {PinnedMemory(kBytes), PinnedMemory(kBytes)};
    for (auto& input : inputs) std::fill_n(input.as<std::uint32_t>(), kCount, k);
    for (int r = 0; r < 2; ++r) {
      const auto i = static_cast<std::size_t>(r);
      checkCuda(
          launch({world.rank(r), collectiveTask(plan, inputs[i].data(), outputs[i].data())}, world.stream(r)),
          "a launch");
      // Rank 1 does not send before rank 0 is done, where that does not wait for it.
      if (k == kOperations && launch == launchPlanted) world.wait(r);
    }
    for (int r = 0; r < 2; ++r) world.wait(r);
    last.assign(outputs[0].as<std::uint32_t>(), outputs[0].as<std::uint32_t>() + kCount);
  }
  return last;
}

TEST(CudaPlanted, AFlagThatIsUsedAgainGivesOldData) {
  EXPECT_EQ(lastResult(launchCollective), std::vector<std::uint32_t>(kCount, 2 * (kPacketSlots + 1)));
  EXPECT_EQ(lastResult(launchPlanted), std::vector<std::uint32_t>(kCount, kPacketSlots + 1 + 1));
}

}  // namespace
}  // namespace tutti::test
