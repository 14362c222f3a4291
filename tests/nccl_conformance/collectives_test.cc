// Every collective of every type and operation, in place and not, for small counts.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/nccl_conformance/checked_call.h"

namespace conformance {
namespace {

constexpr Collective kReductions[] = {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter};
constexpr Collective kMoves[] = {Collective::all_gather, Collective::broadcast, Collective::bcast,
                                 Collective::all_to_all, Collective::gather,    Collective::scatter};

std::vector<std::size_t> counts() {
  return isSlow() ? std::vector<std::size_t>{5} : std::vector<std::size_t>{1, 5, 300};
}

/// Calls `use` with each call of the collective, root after root.
template <class Use>
void forEachCall(Collective collective, const Use& use) {
  const bool has_places = collective != Collective::all_to_all && collective != Collective::bcast;
  const std::vector<std::size_t> all_counts = counts();
  Call call{.collective = collective, .root = 0};
  for (const Type& type : kTypes) {
    call.type = &type;
    for (call.op = 0; call.op <= (call.reduces() ? kPreMulSum : 0); ++call.op) {
      for (std::size_t i = 0; i < all_counts.size() * (has_places ? 2 : 1); ++i) {
        call.count = all_counts[i % all_counts.size()];
        call.in_place = i >= all_counts.size();
        use(call);
        ++call.root;
      }
    }
  }
}

void checkAll(int nranks, Collective collective) {
  runRanks(nranks, [&](const Rank& rank) {
    std::uint64_t seed = 1;
    forEachCall(collective, [&](Call call) {
      call.root %= nranks;
      checkCall(rank, call, ++seed);
    });
  });
}

class Reductions : public PerRanks {};
class Moves : public PerRanks {};

TEST_P(Reductions, EveryTypeAndOperation) {
  for (const Collective collective : kReductions) checkAll(GetParam(), collective);
}

TEST_P(Moves, EveryType) {
  for (const Collective collective : kMoves) checkAll(GetParam(), collective);
}

const auto kRanks = testing::Values(1, 2, 3, 4, 7, 8);
INSTANTIATE_TEST_SUITE_P(Ranks, Reductions, kRanks);
INSTANTIATE_TEST_SUITE_P(Ranks, Moves, kRanks);

/// Buffers may be anything then.
TEST(Collectives, NothingHappensForCountZero) {
  runRanks(std::min(2, mostRanks()), [](const Rank& rank) {
    for (int number = 0; number <= static_cast<int>(Collective::scatter); ++number) {
      const Call call{.collective = static_cast<Collective>(number), .type = &kTypes[7]};
      checkCall(rank, call);
      check(issue(call, ncclSum, nullptr, nullptr, rank.comm, rank.stream), call.text().c_str());
    }
    checkUsable(rank);
  });
}

/// The scalar is read when the operation is carried out, from where the buffers are.
TEST(Collectives, PreMulSumWithAScalarInMemory) {
  runRanks(std::min(4, mostRanks()), [](const Rank& rank) {
    for (const Type& type : kTypes) {
      const Call call{.type = &type, .op = kPreMulSum, .count = 20};
      const std::size_t bytes = call.count * type.bytes;
      std::vector<std::byte> values(bytes);
      for (std::size_t i = 0; i < call.count; ++i)
        encode(type, values.data() + i * type.bytes, inputValue(call, 1, rank.rank, i));
      const Buffer data(bytes);
      const Buffer scalar(sizeof(double));
      copyIn(data.at(), values.data(), bytes);
      std::vector<std::byte> factor(type.bytes);
      encode(type, factor.data(), scalarOf(rank.rank));
      ncclRedOp_t op;
      CHECK_NCCL(ncclRedOpCreatePreMulSum(&op, scalar.at(), type.type, ncclScalarDevice, rank.comm));
      copyIn(scalar.at(), factor.data(), type.bytes);
      check(issue(call, op, data.at(), data.at(), rank.comm, rank.stream), type.name);
      CHECK_NCCL(ncclRedOpDestroy(op, rank.comm));
      rank.stream.synchronize();
      copyOut(values.data(), data.at(), bytes);
      for (std::size_t i = 0; i < call.count; ++i) {
        EXPECT_EQ(decode(type, values.data() + i * type.bytes), reducedValue(call, 1, rank.nranks, i))
            << type.name << " " << i;
      }
    }
  });
}

/// Operations stay apart, and serve again after others were destroyed.
TEST(Collectives, SeveralPreMulSumsAtOnce) {
  runRanks(std::min(2, mostRanks()), [](const Rank& rank) {
    const float twos = 2;
    const double thirds = 3;
    const Buffer floats(sizeof(float));
    const Buffer doubles(sizeof(double));
    ncclRedOp_t two;
    ncclRedOp_t three;
    CHECK_NCCL(ncclRedOpCreatePreMulSum(&two, const_cast<float*>(&twos), ncclFloat, ncclScalarHostImmediate,
                                        rank.comm));
    CHECK_NCCL(ncclRedOpCreatePreMulSum(&three, const_cast<double*>(&thirds), ncclDouble,
                                        ncclScalarHostImmediate, rank.comm));
    const float one = 1;
    copyIn(floats.at(), &one, sizeof(one));
    CHECK_NCCL(ncclAllReduce(floats.at(), floats.at(), 1, ncclFloat, two, rank.comm, rank.stream));
    CHECK_NCCL(ncclRedOpDestroy(two, rank.comm));
    const double unit = 1;
    copyIn(doubles.at(), &unit, sizeof(unit));
    CHECK_NCCL(ncclAllReduce(doubles.at(), doubles.at(), 1, ncclDouble, three, rank.comm, rank.stream));
    CHECK_NCCL(ncclRedOpDestroy(three, rank.comm));
    rank.stream.synchronize();
    float sum = 0;
    double total = 0;
    copyOut(&sum, floats.at(), sizeof(sum));
    copyOut(&total, doubles.at(), sizeof(total));
    EXPECT_EQ(sum, 2 * rank.nranks);
    EXPECT_EQ(total, 3 * rank.nranks);
  });
}

}  // namespace
}  // namespace conformance
