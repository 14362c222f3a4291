// combine: bytes touched per second, by type, operation, number of operands and size.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "kernels/host/combine.h"

namespace tutti {
namespace {

/// Two sources into one or two destinations, as a ring step does. Argument: bytes of one operand.
void combineStep(benchmark::State& state, DataType type, RedOp op, std::uint32_t dst_count) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::vector<std::byte>> buffers(2 + dst_count, std::vector<std::byte>(bytes));
  const std::byte* srcs[] = {buffers[0].data(), buffers[1].data()};
  std::byte* dsts[] = {buffers[2].data(), buffers.back().data()};
  const CombineArgs args{.dsts = dsts,
                         .srcs = srcs,
                         .dst_count = dst_count,
                         .src_count = 2,
                         .n = bytes / sizeOf(type),
                         .own = 2,
                         .nranks = 4};
  const CombineFn combine = combineFunction(type, op);
  for (auto _ : state) {
    combine(args);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes * (2 + dst_count)));
}

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> from(bytes);
  std::vector<std::byte> to(bytes);
  const std::byte* srcs[] = {from.data()};
  std::byte* dsts[] = {to.data()};
  const CombineArgs args{.dsts = dsts, .srcs = srcs, .dst_count = 1, .src_count = 1, .n = bytes};
  for (auto _ : state) {
    copyCombine(args, 1);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes * 2));
}

constexpr std::int64_t kInL1 = 8 << 10;
constexpr std::int64_t kInL2 = 128 << 10;
constexpr std::int64_t kInMemory = 64 << 20;

BENCHMARK_CAPTURE(combineStep, float_sum_to_1, DataType::float32, RedOp::sum, 1)
    ->Arg(kInL1)
    ->Arg(kInL2)
    ->Arg(kInMemory);
BENCHMARK_CAPTURE(combineStep, float_sum_to_2, DataType::float32, RedOp::sum, 2)->Arg(kInL2)->Arg(kInMemory);
BENCHMARK_CAPTURE(combineStep, float_avg_to_1, DataType::float32, RedOp::avg, 1)->Arg(kInL2);
BENCHMARK_CAPTURE(combineStep, float_max_to_1, DataType::float32, RedOp::max, 1)->Arg(kInL2);
BENCHMARK_CAPTURE(combineStep, double_sum_to_1, DataType::float64, RedOp::sum, 1)->Arg(kInL2);
BENCHMARK_CAPTURE(combineStep, int32_sum_to_1, DataType::int32, RedOp::sum, 1)->Arg(kInL2);
BENCHMARK_CAPTURE(combineStep, bfloat16_sum_to_1, DataType::bfloat16, RedOp::sum, 1)->Arg(kInL2);
BENCHMARK_CAPTURE(combineStep, bfloat16_max_to_1, DataType::bfloat16, RedOp::max, 1)->Arg(kInL2);
BENCHMARK(copy)->Arg(kInL2)->Arg(kInMemory);

}  // namespace
}  // namespace tutti
