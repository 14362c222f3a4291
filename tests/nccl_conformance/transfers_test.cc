// Sends and receives, and what programs make of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/nccl_conformance/checked_call.h"

namespace conformance {
namespace {

/// What `from` tells `to` in message `number`.
std::vector<std::int32_t> message(int from, int to, int number, std::size_t count) {
  std::vector<std::int32_t> result(count);
  std::iota(result.begin(), result.end(), from * 1'000'000 + to * 10'000 + number * 1'000);
  return result;
}

class Message {
 public:
  explicit Message(std::size_t count) : count_(count), memory_(count * sizeof(std::int32_t) + 4) {}
  explicit Message(const std::vector<std::int32_t>& words) : Message(words.size()) {
    copyIn(memory_.at(), words.data(), count_ * sizeof(std::int32_t));
  }
  std::vector<std::int32_t> words() const {
    std::vector<std::int32_t> result(count_);
    copyOut(result.data(), memory_.at(), count_ * sizeof(std::int32_t));
    return result;
  }
  void send(const Rank& rank, int to) const {
    CHECK_NCCL(ncclSend(memory_.at(), count_, ncclInt32, to, rank.comm, rank.stream));
  }
  void receive(const Rank& rank, int from) const {
    CHECK_NCCL(ncclRecv(memory_.at(), count_, ncclInt32, from, rank.comm, rank.stream));
  }

 private:
  std::size_t count_;
  Buffer memory_;
};

class Transfers : public PerRanks {};

TEST_P(Transfers, NeighboursExchangeTheirEdges) {
  runRanks(GetParam(), [](const Rank& r) {
    const int next = (r.rank + 1) % r.nranks;
    const int previous = (r.rank + r.nranks - 1) % r.nranks;
    const Message up(message(r.rank, next, 1, 200));
    const Message down(message(r.rank, previous, 2, 200));
    const Message from_previous(200);
    const Message from_next(200);
    Group group;
    up.send(r, next);
    from_previous.receive(r, previous);
    down.send(r, previous);
    from_next.receive(r, next);
    group.end();
    r.stream.synchronize();
    EXPECT_EQ(from_previous.words(), message(previous, r.rank, 1, 200));
    EXPECT_EQ(from_next.words(), message(next, r.rank, 2, 200));
  });
}

/// A size for each pair, some of them 0.
std::size_t sizeFor(int from, int to) { return static_cast<std::size_t>(from * 7 + to * 3) % 11 * 40; }

TEST_P(Transfers, AllToAllWithASizeForEachPair) {
  runRanks(GetParam(), [](const Rank& r) {
    std::vector<Message> sent;
    std::vector<Message> received;
    for (int peer = 0; peer < r.nranks; ++peer) {
      sent.emplace_back(message(r.rank, peer, 0, sizeFor(r.rank, peer)));
      received.emplace_back(sizeFor(peer, r.rank));
    }
    Group group;
    for (int peer = 0; peer < r.nranks; ++peer) {
      sent[static_cast<std::size_t>(peer)].send(r, peer);
      received[static_cast<std::size_t>(peer)].receive(r, peer);
    }
    group.end();
    r.stream.synchronize();
    for (int peer = 0; peer < r.nranks; ++peer) {
      EXPECT_EQ(received[static_cast<std::size_t>(peer)].words(),
                message(peer, r.rank, 0, sizeFor(peer, r.rank)))
          << peer << " to " << r.rank;
    }
  });
}

/// Several messages for each pair, in the pair's order; pairs in an order of each rank's own.
TEST_P(Transfers, PairsInAnyOrder) {
  constexpr std::size_t kWords[] = {20, 21, 22};  // of a pair's messages
  runRanks(GetParam(), [&](const Rank& r) {
    std::vector<std::vector<Message>> sent(static_cast<std::size_t>(r.nranks));
    std::vector<std::vector<Message>> received(sent.size());
    for (std::size_t peer = 0; peer < sent.size(); ++peer) {
      for (const std::size_t words : kWords) {
        sent[peer].emplace_back(message(r.rank, static_cast<int>(peer), static_cast<int>(words), words));
        received[peer].emplace_back(words);
      }
    }
    const auto send = [&](int peer) {
      for (const Message& one : sent[static_cast<std::size_t>(peer)]) one.send(r, peer);
    };
    const auto receive = [&](int peer) {
      for (const Message& one : received[static_cast<std::size_t>(peer)]) one.receive(r, peer);
    };
    Group group;
    const bool receives_first = r.rank % 2 == 0;
    for (const bool receives : {receives_first, !receives_first}) {
      for (int i = 0; i < r.nranks; ++i) {
        if (receives)
          receive((i * (r.nranks - 1) + r.rank) % r.nranks);
        else
          send(r.nranks - 1 - i);
      }
    }
    group.end();
    r.stream.synchronize();
    for (std::size_t peer = 0; peer < received.size(); ++peer) {
      for (const Message& one : received[peer]) {
        const std::size_t words = one.words().size();
        EXPECT_EQ(one.words(), message(static_cast<int>(peer), r.rank, static_cast<int>(words), words))
            << words << " words from " << peer << " to " << r.rank;
      }
    }
  });
}

/// Without groups: rank 0 sends, each receives and hands on.
TEST_P(Transfers, HandedOnFromRankToRank) {
  runRanks(GetParam(), [](const Rank& r) {
    const Message data(r.rank == 0 ? message(0, 0, 5, 1'000) : std::vector<std::int32_t>(1'000));
    if (r.rank > 0) data.receive(r, r.rank - 1);
    if (r.rank + 1 < r.nranks) data.send(r, r.rank + 1);
    r.stream.synchronize();
    EXPECT_EQ(data.words(), message(0, 0, 5, 1'000));
  });
}

TEST_P(Transfers, AllSendToOne) {
  runRanks(GetParam(), [](const Rank& r) {
    const int root = r.nranks - 1;
    const Message mine(message(r.rank, root, 0, 50));
    std::vector<Message> received;
    for (int peer = 0; r.rank == root && peer < r.nranks; ++peer) received.emplace_back(std::size_t{50});
    Group group;
    for (int peer = 0; r.rank == root && peer < r.nranks; ++peer)
      received[static_cast<std::size_t>(peer)].receive(r, peer);
    mine.send(r, root);
    group.end();
    r.stream.synchronize();
    for (int peer = 0; r.rank == root && peer < r.nranks; ++peer)
      EXPECT_EQ(received[static_cast<std::size_t>(peer)].words(), message(peer, root, 0, 50));
  });
}

/// As PyTorch gathers tensors of different sizes.
TEST_P(Transfers, UnequalAllGatherByBroadcasts) {
  runRanks(GetParam(), [](const Rank& r) {
    const auto countOf = [](int rank) { return static_cast<std::size_t>(30 * rank % 80 + 1); };
    std::vector<Buffer> outputs;
    const Buffer input(countOf(r.rank) * sizeof(std::int32_t));
    copyIn(input.at(), message(r.rank, 0, 0, countOf(r.rank)).data(), countOf(r.rank) * sizeof(std::int32_t));
    outputs.reserve(static_cast<std::size_t>(r.nranks));
    for (int root = 0; root < r.nranks; ++root) outputs.emplace_back(countOf(root) * sizeof(std::int32_t));
    Group group;
    for (int root = 0; root < r.nranks; ++root) {
      CHECK_NCCL(ncclBroadcast(input.at(), outputs[static_cast<std::size_t>(root)].at(), countOf(root),
                               ncclInt32, root, r.comm, r.stream));
    }
    group.end();
    r.stream.synchronize();
    for (int root = 0; root < r.nranks; ++root) {
      std::vector<std::int32_t> got(countOf(root));
      copyOut(got.data(), outputs[static_cast<std::size_t>(root)].at(), got.size() * sizeof(std::int32_t));
      EXPECT_EQ(got, message(root, 0, 0, countOf(root)));
    }
  });
}

/// And scatters sums of different sizes.
TEST_P(Transfers, UnequalReduceScatterByReduces) {
  runRanks(GetParam(), [](const Rank& r) {
    std::vector<CheckedCall> calls;
    calls.reserve(static_cast<std::size_t>(r.nranks));
    for (int root = 0; root < r.nranks; ++root) {
      const Call call{.collective = Collective::reduce,
                      .type = &kTypes[7],
                      .root = root,
                      .count = static_cast<std::size_t>(10 + 7 * root)};
      calls.emplace_back(call, static_cast<std::uint64_t>(root), r.rank, r.nranks);
    }
    Group group;
    for (CheckedCall& call : calls) call.issue(r.comm, r.stream);
    group.end();
    r.stream.synchronize();
    for (const CheckedCall& call : calls) call.verify();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Transfers, testing::Values(1, 2, 3, 8));

/// Halves that are bytes of one type and as many of another.
TEST(Transfer, TypesMayDifferWhereBytesAreEqual) {
  if (mostRanks() < 2) GTEST_SKIP() << "needs two ranks";
  runRanks(2, [](const Rank& r) {
    const Buffer data(80);
    std::vector<std::int32_t> words(20);
    if (r.rank == 0) words = message(0, 1, 3, 20);
    copyIn(data.at(), words.data(), 80);
    if (r.rank == 0) CHECK_NCCL(ncclSend(data.at(), 20, ncclInt32, 1, r.comm, r.stream));
    if (r.rank == 1) CHECK_NCCL(ncclRecv(data.at(), 80, ncclUint8, 0, r.comm, r.stream));
    r.stream.synchronize();
    copyOut(words.data(), data.at(), 80);
    EXPECT_EQ(words, message(0, 1, 3, 20));
  });
}

}  // namespace
}  // namespace conformance
