// What the ranks of a chaos run do: calls of all kinds, drawn from a seed that they share, every result
// checked against the oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/transfers.h"
#include "tutti/tutti.h"

namespace tutti::test {

/// One rank's part. All ranks make the same rounds in the same order.
class RandomProgram {
 public:
  /// `registers`: some buffers are of ncclMemAlloc, and registered.
  RandomProgram(Comm& comm, std::uint64_t seed, bool registers)
      : comm_(comm),
        seed_(seed),
        registers_(registers),
        own_(seed ^ (static_cast<std::uint64_t>(comm.rank() + 1) << 32)) {}

  /// Throws tutti::Error when a call fails, std::runtime_error when a value is wrong.
  void round(std::uint64_t number) {
    const std::uint64_t seed = seedOf(number);
    std::mt19937_64 random(seed);
    switch (random() % 10) {
      case 0:
        return allToAllV({&comm_}, seed % 100'000);
      case 1:
        return shift(random, seed);
      case 2:
        return pairs(random, seed);
      case 3:
        return group(random, seed);
      default:
        checkOperation(comm_, drawCollective(random), seed, drawPlacement(random));
    }
  }

  /// A round in which `other` calls something else than the rest; `other` says what.
  void differ(std::uint64_t number, bool is_other) {
    const std::uint64_t seed = seedOf(number);
    std::mt19937_64 random(seed);
    Descriptor d = drawCollective(random);
    d.count = std::max<std::uint64_t>(d.count, 2);
    const Placement place = drawPlacement(random);
    const auto how = random() % 4;
    if (is_other) alter(d, how);
    checkOperation(comm_, d, seed, place);
  }

 private:
  static constexpr std::uint64_t kMostBytes = 2 << 20;

  std::uint64_t seedOf(std::uint64_t round) const { return seed_ * 1'000'003 + round; }

  /// Small ones are as frequent as large ones: uniform in the number of digits.
  static std::uint64_t drawBytes(std::mt19937_64& random, std::uint64_t most = kMostBytes) {
    const std::uint64_t limit = std::uint64_t{1} << (random() % 23);
    return random() % std::min(limit, most + 1);
  }

  Descriptor drawCollective(std::mt19937_64& random) const {
    const auto nranks = static_cast<std::uint64_t>(comm_.size());
    Descriptor d;
    d.collective = static_cast<Collective>(random() % kCollectiveCount);
    d.type = static_cast<DataType>(random() % kDataTypeCount);
    d.op = isReduction(d.collective) ? static_cast<RedOp>(random() % kAllRedOpCount) : RedOp::sum;
    d.root = hasRoot(d.collective) ? static_cast<int>(random() % nranks) : 0;
    const bool has_blocks = hasInputBlocks(d.collective) || hasOutputBlocks(d.collective);
    d.count = drawBytes(random) / sizeOf(d.type) / (has_blocks ? nranks : 1);
    return d;
  }

  Placement drawPlacement(std::mt19937_64& random) {
    return {.in_place = random() % 2 == 0,
            .shift = own_() % 16,
            .input_registered = registers_ && own_() % 6 == 0,
            .output_registered = registers_ && own_() % 6 == 0};
  }

  void alter(Descriptor& d, std::uint64_t how) const {
    const bool is_summing = isReduction(d.collective);
    if (how == 0 && hasRoot(d.collective)) {
      d.root = (d.root + 1) % comm_.size();
    } else if (how == 1 && is_summing) {
      d.op = d.op == RedOp::max ? RedOp::min : RedOp::max;
    } else if (how == 2) {
      d.type = d.type == DataType::int32 ? DataType::float32 : DataType::int32;
    } else if (how == 3) {
      d.collective = is_summing ? Collective::all_gather : Collective::all_reduce;
      d.root = 0;
      d.op = RedOp::sum;
    } else {
      --d.count;
    }
  }

  void requireMessage(const std::vector<std::int32_t>& got, int from, int number, std::uint64_t seed) const {
    require(got == message(from, comm_.rank(), number, got.size()),
            "rank " + std::to_string(comm_.rank()) + " got wrong data from rank " + std::to_string(from) +
                ", seed " + std::to_string(seed));
  }

  /// Each sends to the rank `distance` after it, itself perhaps.
  void shift(std::mt19937_64& random, std::uint64_t seed) {
    const int nranks = comm_.size();
    const int distance = static_cast<int>(random() % static_cast<std::uint64_t>(nranks));
    const int to = (comm_.rank() + distance) % nranks;
    const int from = (comm_.rank() - distance + nranks) % nranks;
    const std::size_t count = drawBytes(random) / sizeof(std::int32_t);
    const auto sent = message(comm_.rank(), to, 1, count);
    std::vector<std::int32_t> received(count);
    Group group;
    comm_.send(sent.data(), count, to);
    comm_.receive(received.data(), count, from);
    group.end();
    requireMessage(received, from, 1, seed);
  }

  /// Ranks 0 and 1, 2 and 3, ... exchange messages by calls of their own, there and back.
  void pairs(std::mt19937_64& random, std::uint64_t seed) {
    const std::size_t count = drawBytes(random) / sizeof(std::int32_t);
    const int peer = comm_.rank() ^ 1;
    if (peer >= comm_.size()) return;
    const auto sent = message(comm_.rank(), peer, 2, count);
    std::vector<std::int32_t> received(count);
    for (const bool first_sends : {true, false}) {
      if (first_sends == (comm_.rank() < peer)) {
        comm_.send(sent.data(), count, peer);
      } else {
        comm_.receive(received.data(), count, peer);
      }
    }
    requireMessage(received, peer, 2, seed);
  }

  /// Several all-reduces in place and a broadcast, launched together.
  void group(std::mt19937_64& random, std::uint64_t seed) {
    const int nranks = comm_.size();
    const int root = static_cast<int>(random() % static_cast<std::uint64_t>(nranks));
    std::vector<std::vector<std::int32_t>> sums(2 + random() % 3);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      sums[k].resize(drawBytes(random, 256 << 10) / sizeof(std::int32_t));
      for (std::size_t i = 0; i < sums[k].size(); ++i) {
        sums[k][i] = static_cast<std::int32_t>(inputValue(seed + k, comm_.rank(), i, DataType::int32));
      }
    }
    auto told = message(comm_.rank(), root, 4, drawBytes(random, 256 << 10) / sizeof(std::int32_t));
    Group group;
    for (auto& sum : sums) comm_.allReduce(sum.data(), sum.data(), sum.size(), ncclInt32, ncclSum);
    comm_.broadcast(told.data(), told.data(), told.size(), ncclInt32, root);
    group.end();
    for (std::size_t k = 0; k < sums.size(); ++k) {
      for (std::size_t i = 0; i < sums[k].size(); ++i) {
        const double want = reducedValue(seed + k, nranks, DataType::int32, RedOp::sum, i);
        require(sums[k][i] == static_cast<std::int32_t>(want),
                "a sum in a group is wrong, seed " + std::to_string(seed));
      }
    }
    require(told == message(root, root, 4, told.size()),
            "a broadcast in a group is wrong, seed " + std::to_string(seed));
  }

  Comm& comm_;
  std::uint64_t seed_;
  bool registers_;
  std::mt19937_64 own_;  ///< for what is each rank's own business
};

}  // namespace tutti::test
