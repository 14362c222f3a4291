#include <cstdint>
#include <vector>

#include "bench/gpu/contender.h"
#include "bench/gpu/cuda_resources.h"
#include "bench/gpu/ring_yardstick.h"

namespace tutti::gpu_bench {
namespace {

class Yardstick final : public Contender {
 public:
  explicit Yardstick(const Arrangement& arrangement) : arrangement_(arrangement) {
    const auto blocks = static_cast<std::size_t>(arrangement.lanes);
    const std::size_t slots = blocks * static_cast<std::size_t>(arrangement.slot_count);
    const std::size_t slot_vectors = static_cast<std::size_t>(arrangement.slot_bytes) / sizeof(float4);
    for (int rank = 0; rank < arrangement.ranks; ++rank) {
      links_.emplace_back(blocks);
      slots_.emplace_back(slots * slot_vectors);
      checkCuda(cudaMemset(links_.back().data(), 0, links_.back().bytes()), "cudaMemset");
    }
    checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  std::string name() const override { return "yardstick"; }
  void join(int /*rank*/) override {}
  void leave(int /*rank*/) override {}

  void allReduce(int rank, const float* in, float* out, std::size_t count, cudaStream_t stream) override {
    const auto own = static_cast<std::size_t>(rank);
    const std::size_t right = (own + 1) % links_.size();
    // A link lies with its receiver.
    const RingRank ring{.in = links_[own].data(),
                        .out = links_[right].data(),
                        .slots_in = slots_[own].data(),
                        .slots_out = slots_[right].data(),
                        .slot_count = static_cast<std::uint32_t>(arrangement_.slot_count),
                        .slot_vectors = static_cast<std::uint32_t>(arrangement_.slot_bytes) / 16,
                        .rank = rank,
                        .nranks = arrangement_.ranks};
    checkCuda(launchRing(ring, arrangement_.lanes, reinterpret_cast<const float4*>(in),
                         reinterpret_cast<float4*>(out), count / 4, stream),
              "launch of the yardstick");
  }

 private:
  Arrangement arrangement_;
  std::vector<DeviceArray<RingLink>> links_;
  std::vector<DeviceArray<float4>> slots_;
};

}  // namespace

std::unique_ptr<Contender> makeYardstick(const Arrangement& arrangement) {
  return std::make_unique<Yardstick>(arrangement);
}

}  // namespace tutti::gpu_bench
