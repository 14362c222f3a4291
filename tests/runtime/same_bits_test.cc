// All ranks end with the same bits, whatever the program, type, operation, size and number of ranks: a
// promise. Inputs are arbitrary bits, infinities, denormals and NaNs among them, so that every rounding
// shows.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/communicator.h"
#include "runtime/process.h"
#include "tests/harness/ranks.h"
#include "tests/harness/variants.h"

namespace tutti {
namespace {

using Bytes = std::vector<std::byte>;

/// One operation of the run, the same on all ranks.
struct Draw {
  Descriptor descriptor;
  std::uint64_t seed;
};

std::vector<Draw> drawsOf(std::uint64_t seed, int nranks, int count) {
  std::mt19937_64 random(seed);
  std::vector<Draw> draws;
  for (int i = 0; i < count; ++i) {
    Descriptor d;
    // Those that leave every rank the same result.
    constexpr Collective kAlike[] = {Collective::all_reduce, Collective::all_reduce, Collective::all_gather,
                                     Collective::broadcast};
    d.collective = kAlike[random() % 4];
    d.type = static_cast<DataType>(i % kDataTypeCount);  // each in turn
    d.op = isReduction(d.collective) ? static_cast<RedOp>(random() % kAllRedOpCount) : RedOp::sum;
    d.root = hasRoot(d.collective) ? static_cast<int>(random() % static_cast<std::uint64_t>(nranks)) : 0;
    d.count = 1 + (random() % 3 == 0 ? random() % 30'000 : random() % 700);
    draws.push_back({d, random()});
  }
  return draws;
}

/// Any bits at all: numbers of all magnitudes, denormals, infinities and NaNs.
Bytes inputOf(const Draw& draw, int rank, std::size_t bytes) {
  std::mt19937_64 random(draw.seed + static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15ULL);
  Bytes input(bytes);
  for (std::byte& b : input) b = static_cast<std::byte>(random());
  return input;
}

/// What every rank ends with, by operation, in one text of bytes.
Bytes resultsOf(Communicator& comm, const std::vector<Draw>& draws) {
  Bytes all;
  for (const Draw& draw : draws) {
    const Descriptor& d = draw.descriptor;
    const std::size_t bytes = d.count * sizeOf(d.type);
    const Bytes input = inputOf(draw, comm.rank(), bytes);
    Bytes output(d.collective == Collective::all_gather ? bytes * static_cast<std::size_t>(comm.nranks())
                                                        : bytes);
    Task task{.descriptor = d, .send = input.data(), .recv = output.data()};
    // Every rank's own scalar.
    for (std::byte& b : task.scalar.value) b = static_cast<std::byte>(comm.rank() * 7 + 48);
    if (!comm.carryOut(task, nullptr)) throw comm.faultError();
    all.insert(all.end(), output.begin(), output.end());
  }
  return all;
}

class SameBits : public testing::TestWithParam<test::Variant> {};

TEST_P(SameBits, OnAllRanks) {
  for (const int nranks : {2, 3, 4, 5, 7, 8, 16}) {
    const std::uint64_t seed = 31 * static_cast<std::uint64_t>(nranks);
    const std::vector<Draw> draws = drawsOf(seed, nranks, nranks > 8 ? 24 : 96);
    Settings settings = Process::instance().settings();
    settings.plans.fill(GetParam().plan);
    settings.loans.least_bytes = nranks % 2 == 0 ? 0 : 1 << 30;
    const UniqueId id = decode(openRendezvous({.init_timeout = std::chrono::seconds(60)}));
    std::vector<Bytes> results(static_cast<std::size_t>(nranks));
    EXPECT_EQ(test::runThreads(nranks,
                               [&](int rank) {
                                 Communicator comm(Process::instance(), settings,
                                                   {.nranks = nranks, .rank = rank, .id = id, .check = {}});
                                 results[static_cast<std::size_t>(rank)] = resultsOf(comm, draws);
                               }),
              test::noErrors(nranks));
    ASSERT_FALSE(results[0].empty());
    for (const Bytes& result : results)
      ASSERT_TRUE(result == results[0]) << nranks << " ranks, seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(EveryWay, SameBits, testing::ValuesIn(test::kVariants), [](const auto& info) {
  std::string text;
  for (const char c : std::string(info.param.text)) text += c == '/' ? '_' : c;
  return text;
});

}  // namespace
}  // namespace tutti
