// Every type and operation on every instruction set of this CPU, bit for bit against the plain definition.
#include <gtest/gtest.h>

#include <algorithm>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/host/combine_paths.h"
#include "tests/kernels/combine_oracle.h"

namespace tutti {
namespace {

using test::Call;
using test::Draw;

/// One operand in memory of its own, at a distance from a 64-byte line, between guard bytes.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t shift) : shift_(kGuard + shift), bytes_(bytes) {
    memory_.assign(bytes + 2 * kGuard + kLine + shift, kFill);
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    shift_ += (kLine - address % kLine) % kLine;
  }
  std::byte* data() { return memory_.data() + shift_; }

  bool guardsHold() const {
    const auto is_fill = [](std::byte b) { return b == kFill; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(shift_);
    return std::all_of(memory_.begin(), begin, is_fill) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(bytes_), memory_.end(), is_fill);
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr std::size_t kLine = 64;
  static constexpr std::byte kFill{0x5a};
  std::size_t shift_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
};

struct Shape {
  std::size_t n;
  std::uint32_t srcs;
  std::uint32_t dsts;
  std::uint64_t stream;
  std::vector<std::size_t> shifts;  ///< of sources, then of destinations
  std::vector<int> aliases;         ///< per destination: the source whose memory it is, or -1
};

void put(std::vector<std::byte>& bytes, std::size_t i, std::size_t size, std::uint64_t bits) {
  for (std::size_t b = 0; b < size; ++b) bytes[i * size + b] = static_cast<std::byte>(bits >> (8 * b));
}

/// Inputs and expected output of one case, as bytes.
struct Case {
  Case(Call c, Shape s, Draw draw, std::mt19937_64& random) : call(std::move(c)), shape(std::move(s)) {
    const std::size_t size = sizeOf(call.type);
    inputs.assign(shape.srcs, std::vector<std::byte>(shape.n * size));
    expected.resize(shape.n * size);
    std::vector<std::uint64_t> element(shape.srcs);
    for (std::size_t i = 0; i < shape.n; ++i) {
      for (std::uint32_t s = 0; s < shape.srcs; ++s) {
        element[s] = test::drawBits(call.type, draw, random);
        put(inputs[s], i, size, element[s]);
      }
      put(expected, i, size, test::combineElement(call, element));
    }
  }

  std::string run(const CombinePath& path) const {
    std::vector<Buffer> buffers;
    buffers.reserve(shape.srcs + shape.dsts);
    std::vector<const std::byte*> srcs;
    std::vector<std::byte*> dsts;
    for (std::uint32_t s = 0; s < shape.srcs; ++s) {
      std::byte* data = buffers.emplace_back(expected.size(), shape.shifts[s]).data();
      if (!inputs[s].empty()) std::memcpy(data, inputs[s].data(), inputs[s].size());
      srcs.push_back(data);
    }
    for (std::uint32_t d = 0; d < shape.dsts; ++d) {
      const int alias = shape.aliases[d];
      dsts.push_back(alias >= 0 ? buffers[static_cast<std::size_t>(alias)].data()
                                : buffers.emplace_back(expected.size(), shape.shifts[shape.srcs + d]).data());
    }
    path.table->functions[static_cast<int>(call.type)][static_cast<int>(call.op)](
        {.dsts = dsts.data(),
         .srcs = srcs.data(),
         .dst_count = shape.dsts,
         .src_count = shape.srcs,
         .n = shape.n,
         .own = call.own,
         .scales = call.scales.data(),
         .stream = shape.stream,
         .nranks = call.nranks,
         .last = call.last});
    return check(buffers, dsts);
  }

  std::string check(std::vector<Buffer>& buffers, const std::vector<std::byte*>& dsts) const {
    const std::size_t size = sizeOf(call.type);
    for (std::uint32_t d = 0; d < shape.dsts; ++d) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (dsts[d][i] != expected[i]) {
          return "destination " + std::to_string(d) + " differs in element " + std::to_string(i / size);
        }
      }
    }
    for (std::uint32_t s = 0; s < shape.srcs; ++s) {
      const bool is_overwritten =
          std::count(shape.aliases.begin(), shape.aliases.end(), static_cast<int>(s)) != 0;
      if (!is_overwritten && !std::equal(inputs[s].begin(), inputs[s].end(), buffers[s].data())) {
        return "source " + std::to_string(s) + " was changed";
      }
    }
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      if (!buffers[b].guardsHold()) return "memory around operand " + std::to_string(b) + " was written";
    }
    return "";
  }

  std::string text() const {
    return std::string(name(call.type)) + " " + std::string(name(call.op)) + ", " +
           std::to_string(shape.srcs) + " to " + std::to_string(shape.dsts) + ", n " +
           std::to_string(shape.n) + ", stream " + std::to_string(shape.stream) + ", own " +
           std::to_string(call.own) + ", nranks " + std::to_string(call.nranks) + (call.last ? ", last" : "");
  }

  Call call;
  Shape shape;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::byte> expected;
};

Shape drawShape(std::size_t n, std::uint32_t srcs, DataType type, std::mt19937_64& random) {
  Shape shape{.n = n,
              .srcs = srcs,
              .dsts = static_cast<std::uint32_t>(1 + random() % 3),
              .stream = 0,
              .shifts = {},
              .aliases = {}};
  if (random() % 16 == 0) shape.dsts = kMaxCombineOperands;
  if (random() % 2 == 0) shape.stream = random() >> (kMaxCombineOperands - shape.dsts);
  // Half of the operands are where the type wants them, the others anywhere.
  for (std::uint32_t i = 0; i < srcs + shape.dsts; ++i) {
    const std::size_t step = random() % 2 == 0 ? 1 : sizeOf(type);
    shape.shifts.push_back(random() % 64 / step * step);
  }
  std::vector<int> free;
  for (std::uint32_t s = 0; s < srcs; ++s) free.push_back(static_cast<int>(s));
  std::shuffle(free.begin(), free.end(), random);
  for (std::uint32_t d = 0; d < shape.dsts; ++d) {
    const bool is_in_place = !free.empty() && random() % 3 == 0;
    shape.aliases.push_back(is_in_place ? free.back() : -1);
    if (is_in_place) free.pop_back();
  }
  return shape;
}

Call drawCall(DataType type, RedOp op, std::uint32_t srcs, std::mt19937_64& random) {
  Call call{.type = type,
            .op = op,
            .own = random() % 4 == 0 ? ~std::uint64_t{0} : random(),
            .scales = {},
            .nranks = static_cast<std::int32_t>(1 + random() % kMaxRanks),
            .last = random() % 2 == 0};
  for (std::uint32_t s = 0; s < srcs; ++s) call.scales.push_back(test::drawScale(type, random));
  return call;
}

class CombineDefinition : public testing::TestWithParam<int> {
 protected:
  static void expectAsDefined(const Case& c) {
    for (const CombinePath& path : combinePaths()) {
      ASSERT_EQ(c.run(path), "") << path.name << ": " << c.text();
    }
  }
  DataType type_ = static_cast<DataType>(GetParam());
};

TEST_P(CombineDefinition, EveryTailAndNumberOfSources) {
  const std::uint64_t seed = 20 + static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int op = 0; op < kAllRedOpCount; ++op) {
    for (const std::uint32_t srcs : {1U, 2U, 3U, 8U, 64U}) {
      for (std::size_t n = 0; n <= 70; ++n) {
        const Call call = drawCall(type_, static_cast<RedOp>(op), srcs, random);
        const Shape shape = drawShape(n, srcs, type_, random);
        expectAsDefined(Case(call, shape, static_cast<Draw>(random() % 4), random));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(CombineDefinition, LengthsOfManySteps) {
  const std::uint64_t seed = 40 + static_cast<std::uint64_t>(GetParam());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int op = 0; op < kAllRedOpCount; ++op) {
    for (const std::uint32_t srcs : {1U, 2U, 3U, 5U}) {
      for (int round = 0; round < 6; ++round) {
        const Call call = drawCall(type_, static_cast<RedOp>(op), srcs, random);
        const Shape shape = drawShape(random() % 6000, srcs, type_, random);
        expectAsDefined(Case(call, shape, Draw::mixed, random));
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// Source and destination of two-source calls at every distance from a line, streamed and not.
TEST_P(CombineDefinition, EveryMisalignment) {
  std::mt19937_64 random(60);
  for (std::size_t shift = 0; shift < 64; ++shift) {
    for (const std::uint64_t stream : {0U, 1U, 2U, 3U}) {
      const Call call = drawCall(type_, static_cast<RedOp>(random() % kAllRedOpCount), 2, random);
      const Shape shape{.n = 300,
                        .srcs = 2,
                        .dsts = 2,
                        .stream = stream,
                        .shifts = {random() % 64, shift, shift, random() % 64},
                        .aliases = {-1, -1}};
      expectAsDefined(Case(call, shape, Draw::mixed, random));
      if (HasFatalFailure()) return;
    }
  }
}

/// The 8-bit types, of which all pairs of values can be tried.
class CombineBytes : public CombineDefinition {};

TEST_P(CombineBytes, EveryPair) {
  std::vector<std::byte> a(65536);
  std::vector<std::byte> b(65536);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::byte>(i >> 8);
    b[i] = static_cast<std::byte>(i);
  }
  std::mt19937_64 random(80);
  for (int op = 0; op < kAllRedOpCount; ++op) {
    const Call call = drawCall(type_, static_cast<RedOp>(op), 2, random);
    for (const CombinePath& path : combinePaths()) {
      std::vector<std::byte> result(a.size());
      std::byte* dsts[] = {result.data()};
      const std::byte* srcs[] = {a.data(), b.data()};
      path.table->functions[GetParam()][op]({.dsts = dsts,
                                             .srcs = srcs,
                                             .dst_count = 1,
                                             .src_count = 2,
                                             .n = a.size(),
                                             .own = call.own,
                                             .scales = call.scales.data(),
                                             .nranks = call.nranks,
                                             .last = call.last});
      for (std::size_t i = 0; i < a.size(); ++i) {
        const std::uint64_t pair[] = {i >> 8, i & 0xff};
        ASSERT_EQ(std::to_integer<std::uint64_t>(result[i]), test::combineElement(call, pair))
            << path.name << ": " << name(type_) << " " << name(call.op) << " of " << pair[0] << ", "
            << pair[1];
      }
    }
  }
}

const auto kTypeName = [](const testing::TestParamInfo<int>& type) {
  return std::string(name(static_cast<DataType>(type.param)));
};
INSTANTIATE_TEST_SUITE_P(Types, CombineDefinition, testing::Range(0, kDataTypeCount), kTypeName);
INSTANTIATE_TEST_SUITE_P(Types, CombineBytes,
                         testing::Values(static_cast<int>(DataType::int8), static_cast<int>(DataType::uint8),
                                         static_cast<int>(DataType::float8e4m3),
                                         static_cast<int>(DataType::float8e5m2)),
                         kTypeName);

}  // namespace
}  // namespace tutti
