// combine: bytes touched per second, by type, operation, number of operands, size and instruction set.
//
// Names are subject/type/operation/sources:destinations/bytes of one operand/instruction set.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/host/combine_paths.h"

namespace tutti {
namespace {

constexpr std::size_t kInL1 = 4 << 10;
constexpr std::size_t kInL2 = 128 << 10;
constexpr std::size_t kInMemory = 32 << 20;

struct Shape {
  std::uint32_t srcs = 2;
  std::uint32_t dsts = 1;
  std::size_t bytes = kInL2;  ///< of one operand
  std::uint64_t stream = 0;
  bool last = false;
};

/// Operands lie an odd number of 64-byte lines apart from multiples of a page: they do not compete for the
/// same places of the caches.
struct Memory {
  explicit Memory(const Shape& shape)
      : bytes((shape.srcs + shape.dsts) * (shape.bytes + kApart) + kLine, std::byte{0x3c}) {
    std::byte* at = bytes.data() + (kLine - reinterpret_cast<std::uintptr_t>(bytes.data()) % kLine);
    for (std::uint32_t s = 0; s < shape.srcs; ++s, at += shape.bytes + kApart) srcs.push_back(at);
    for (std::uint32_t d = 0; d < shape.dsts; ++d, at += shape.bytes + kApart) dsts.push_back(at);
  }
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kApart = 5 * kLine;
  std::vector<std::byte> bytes;
  std::vector<const std::byte*> srcs;
  std::vector<std::byte*> dsts;
};

void combineCase(benchmark::State& state, CombineFn combine, DataType type, const Shape& shape) {
  const Memory memory(shape);
  const CombineArgs args{.dsts = memory.dsts.data(),
                         .srcs = memory.srcs.data(),
                         .dst_count = shape.dsts,
                         .src_count = shape.srcs,
                         .n = shape.bytes / sizeOf(type),
                         .own = 1,
                         .stream = shape.stream,
                         .nranks = 4,
                         .last = shape.last};
  for (auto _ : state) {
    combine(args);
    streamingFence();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(shape.bytes * (shape.srcs + shape.dsts)));
}

std::string sizeName(std::size_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + "M" : std::to_string(bytes >> 10) + "K";
}

void add(const CombinePath& path, DataType type, RedOp op, const Shape& shape) {
  const CombineFn combine = path.table->functions[static_cast<int>(type)][static_cast<int>(op)];
  const std::string label = "combine/" + std::string(name(type)) + "/" + std::string(name(op)) + "/" +
                            std::to_string(shape.srcs) + ":" + std::to_string(shape.dsts) +
                            (shape.stream != 0 ? "stream" : "") + "/" + sizeName(shape.bytes) + "/" +
                            std::string(path.name);
  benchmark::RegisterBenchmark(label.c_str(), combineCase, combine, type, shape);
}

/// Everything on every path would be thousands of cases: the best path has all types and operations in one
/// shape, and every path has the frequent types in all shapes.
const bool kRegistered = [] {
  const CombinePath& best = combinePaths().front();
  for (int type = 0; type < kDataTypeCount; ++type) {
    for (int op = 0; op < kAllRedOpCount; ++op) {
      add(best, static_cast<DataType>(type), static_cast<RedOp>(op), {.last = true});
    }
  }
  for (const CombinePath& path : combinePaths()) {
    for (const DataType type : {DataType::float32, DataType::bfloat16, DataType::float16}) {
      for (const RedOp op : {RedOp::sum, RedOp::avg}) {
        for (const std::size_t bytes : {kInL1, kInL2, kInMemory}) {
          for (const std::uint32_t srcs : {1U, 2U, 3U, 4U, 8U}) {
            if (srcs > 1 || op == RedOp::avg) add(path, type, op, {.srcs = srcs, .bytes = bytes});
          }
          add(path, type, op, {.dsts = 2, .bytes = bytes});
        }
        add(path, type, op, {.bytes = kInMemory, .stream = 1});
        add(path, type, op, {.dsts = 2, .bytes = kInMemory, .stream = 3});
        add(path, type, op, {.srcs = 8, .bytes = kInMemory, .stream = 1});
      }
    }
    add(path, DataType::float8e4m3, RedOp::sum, {});
    add(path, DataType::float8e5m2, RedOp::sum, {});
    add(path, DataType::float32, RedOp::max, {});
  }
  // One source: no arithmetic.
  for (const std::size_t bytes : {kInL1, kInL2, kInMemory}) {
    add(best, DataType::uint8, RedOp::sum, {.srcs = 1, .bytes = bytes});
    add(best, DataType::uint8, RedOp::sum, {.srcs = 1, .bytes = bytes, .stream = 1});
  }
  return true;
}();

}  // namespace
}  // namespace tutti
