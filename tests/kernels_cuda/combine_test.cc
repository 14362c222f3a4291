// combine on the GPU against combine on the host, bit by bit: every type and operation, many shapes. The
// kernels are those of the product; peers are played.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "collectives/planner.h"
#include "kernels/host/combine.h"
#include "tests/kernels/combine_oracle.h"
#include "tests/kernels_cuda/cuda_world.h"
#include "tests/kernels_cuda/played_peers.h"

namespace tutti::test {
namespace {

constexpr std::uint32_t kSlotBytes = 32 << 10;
constexpr LinkShape kShape{.lanes = 1, .slot_count = 2, .slot_bytes = kSlotBytes, .packet_bytes = 0};
constexpr std::size_t kMargin = 64;  // around each operand, to see that nothing else is written
constexpr std::byte kUntouched{0xa5};

/// How the operands of a call lie.
enum class Lie : std::uint8_t { aligned, alike, by_elements, anyhow };

/// One operand of a call, in memory of its own.
class TestOperand {
 public:
  TestOperand() : memory_(kSlotBytes + 4 * kMargin) {}

  void place(std::size_t shift, std::size_t bytes) {
    shift_ = kMargin + shift;
    bytes_ = bytes;
    std::fill_n(memory_.data(), bytes + 4 * kMargin, kUntouched);
  }
  std::byte* data() const { return memory_.data() + shift_; }
  bool marginsAreUntouched() const {
    const std::byte* all = memory_.data();
    const auto untouched = [](std::byte byte) { return byte == kUntouched; };
    return std::all_of(all, all + shift_, untouched) &&
           std::all_of(all + shift_ + bytes_, all + bytes_ + 4 * kMargin, untouched);
  }

 private:
  PinnedMemory memory_;
  std::size_t shift_ = 0;
  std::size_t bytes_ = 0;
};

struct Shape {
  RedOp op = RedOp::sum;
  int nranks = 1;
  std::uint64_t n = 0;
  Lie lie = Lie::aligned;
  bool everywhere = false;  ///< all destinations, else one
  bool in_place = false;
};

/// Calls of one type, each with a kernel of its own.
class Calls {
 public:
  Calls(DataType type, std::uint64_t seed) : type_(type), random_(seed) {}

  void run(CudaWorld& world, const Shape& shape) {
    const std::size_t bytes = shape.n * sizeOf(type_);
    const auto count = static_cast<std::size_t>(shape.nranks);
    const std::size_t alike = random_() % 16 / sizeOf(type_) * sizeOf(type_);
    std::vector<Scale> scales;
    for (std::size_t i = 0; i < count; ++i) {
      inputs_[i].place(shiftOf(shape.lie, alike), bytes);
      outputs_[i].place(shiftOf(shape.lie, alike), bytes);
      fill(inputs_[i].data(), shape.n);
      scales.push_back(scaleOf(shape));
    }
    const std::vector<std::byte> want = expected(shape, scales);
    launch(world, shape, scales);
    const std::size_t results = shape.everywhere ? count : 1;
    for (std::size_t i = 0; i < results; ++i) {
      const TestOperand& result = shape.in_place && i == 0 ? inputs_[0] : outputs_[i];
      ASSERT_EQ(std::memcmp(result.data(), want.data(), bytes), 0) << difference(result.data(), want);
      ASSERT_TRUE(result.marginsAreUntouched());
    }
  }

 private:
  std::size_t shiftOf(Lie lie, std::size_t alike) {
    if (lie == Lie::aligned) return 0;
    if (lie == Lie::alike) return alike;
    return lie == Lie::anyhow ? random_() % 16 : random_() % 16 / sizeOf(type_) * sizeOf(type_);
  }

  void fill(std::byte* to, std::uint64_t n) {
    const auto draw = static_cast<Draw>(random_() % 4);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t bits = drawBits(type_, draw, random_);
      std::memcpy(to + i * sizeOf(type_), &bits, sizeOf(type_));
    }
  }

  Scale scaleOf(const Shape& shape) {
    return shape.op == RedOp::avg ? averageScale(type_, shape.nranks) : drawScale(type_, random_);
  }

  std::vector<std::byte> expected(const Shape& shape, const std::vector<Scale>& scales) {
    std::vector<std::byte> result(shape.n * sizeOf(type_));
    std::byte* to = result.data();
    std::vector<const std::byte*> from;
    from.reserve(static_cast<std::size_t>(shape.nranks));
    for (int i = 0; i < shape.nranks; ++i) from.push_back(inputs_[static_cast<std::size_t>(i)].data());
    const CombineArgs args{.dsts = &to,
                           .srcs = from.data(),
                           .dst_count = 1,
                           .src_count = static_cast<std::uint32_t>(shape.nranks),
                           .n = shape.n,
                           .own = ~std::uint64_t{0},
                           .scales = scales.data(),
                           .nranks = shape.nranks,
                           .last = true};
    if (isCopy(args, shape.op)) {
      copyCombine(args, sizeOf(type_));
    } else {
      combineFunction(type_, shape.op)(args);
    }
    return result;
  }

  void launch(CudaWorld& world, const Shape& shape, const std::vector<Scale>& scales) {
    // Everywhere: an all-reduce in parts of n elements, of which rank 0 has the first.
    const auto ranks = static_cast<std::uint64_t>(shape.nranks);
    const Descriptor d{.collective = shape.everywhere ? Collective::all_reduce : Collective::reduce_scatter,
                       .type = type_,
                       .op = shape.op,
                       .count = shape.everywhere ? shape.n * ranks : shape.n};
    Plan plan = makePlan(d, Layout::oneHost(shape.nranks), kShape,
                         {PlanOverride::Pick::direct, PlanOverride::Form::plain});
    if (shape.everywhere) plan.slot_elements = std::max<std::uint64_t>(1, shape.n);
    std::vector<PlayedLoan> loans;
    for (std::size_t i = 1; i < ranks; ++i) {
      loans.push_back({inputs_[i].data(), shape.everywhere ? outputs_[i].data() : nullptr, scales[i]});
    }
    if (shape.n != 0) playPeers(world, d, static_cast<std::uint32_t>(shape.n * sizeOf(type_)), loans);
    std::byte* output = shape.in_place ? inputs_[0].data() : outputs_[0].data();
    CudaTask task = collectiveTask(plan, inputs_[0].data(), output);
    task.scale = scales[0];
    task.lends_address = ~std::uint64_t{0};
    world.launch(0, task);
    while (cudaStreamQuery(world.stream(0)) == cudaErrorNotReady) takeAll(world);
    world.wait(0);
    takeAll(world);
    ASSERT_EQ(world.control(0).fault.kind.load(), 0U);
  }

  std::string difference(const std::byte* got, const std::vector<std::byte>& want) const {
    const std::size_t size = sizeOf(type_);
    for (std::size_t i = 0; i * size < want.size(); ++i) {
      if (std::memcmp(got + i * size, want.data() + i * size, size) == 0) continue;
      std::uint64_t have = 0;
      std::uint64_t expect = 0;
      std::memcpy(&have, got + i * size, size);
      std::memcpy(&expect, want.data() + i * size, size);
      std::string text = fmt::format("element {}: {:x} instead of {:x}, from", i, have, expect);
      for (const TestOperand& input : inputs_) {
        std::uint64_t bits = 0;
        std::memcpy(&bits, input.data() + i * size, size);
        text += fmt::format(" {:x}", bits);
      }
      return text;
    }
    return "";
  }

  static constexpr std::size_t kMostRanks = 5;

  DataType type_;
  std::mt19937_64 random_;
  std::array<TestOperand, kMostRanks> inputs_;
  std::array<TestOperand, kMostRanks> outputs_;
};

class CudaCombine : public testing::TestWithParam<DataType> {};

constexpr std::uint64_t kLengths[] = {0, 1, 2, 3, 7, 16, 17, 31, 64, 127, 333, 1000, 1024, 2053, 4096};

TEST_P(CudaCombine, HasTheBitsOfTheHost) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  for (const int nranks : {1, 2, 3, 5}) {
    CudaWorld world(nranks, kShape);
    for (int op = 0; op < kAllRedOpCount; ++op) {
      Calls calls(GetParam(), random());
      for (int i = 0; i < 16; ++i) {
        Shape shape{.op = static_cast<RedOp>(op), .nranks = nranks};
        shape.n = i < 4 ? std::uint64_t{1000} : kLengths[random() % std::size(kLengths)];
        shape.lie = static_cast<Lie>(i % 4);
        shape.everywhere = random() % 2 == 0;
        shape.in_place = random() % 4 == 0;
        SCOPED_TRACE(fmt::format("{} of {}, {} operands of {}, lie {}, {}{}", name(shape.op),
                                 name(GetParam()), nranks, shape.n, static_cast<int>(shape.lie),
                                 shape.everywhere ? "everywhere" : "to one",
                                 shape.in_place ? ", in place" : ""));
        calls.run(world, shape);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaCombine,
                         testing::Values(DataType::int8, DataType::uint8, DataType::int32, DataType::uint32,
                                         DataType::int64, DataType::uint64, DataType::float16,
                                         DataType::float32, DataType::float64, DataType::bfloat16,
                                         DataType::float8e4m3, DataType::float8e5m2),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tutti::test
