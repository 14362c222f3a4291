#include "bench/peers/loop.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

#include "bench/peers/touch.h"

namespace tutti::peers {
namespace {

constexpr std::uint64_t kFewest = 3;
constexpr std::uint64_t kMost = 1U << 20;

bool dealsOutBlocks(Kind kind) {
  return kind == Kind::kReduceScatter || kind == Kind::kAllGather || kind == Kind::kAllToAll;
}

double nowMicroseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Small integers, so that sums are exact in bfloat16 too.
int inputOf(int rank, std::uint64_t iteration) {
  return 1 + static_cast<int>((static_cast<std::uint64_t>(rank) + iteration) % 4);
}

Pattern patternOf(Type type, int value) {
  const std::uint64_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == Type::kFloat) return {bits << 32 | bits};
  return {(bits >> 16) * 0x0001000100010001U};
}

/// The two halves of touching, for one rank's buffers.
class Toucher {
 public:
  Toucher(const Peer& peer, const Operation& operation, std::byte* send, std::byte* recv)
      : rank_(peer.rank()),
        nranks_(peer.size()),
        operation_(operation),
        send_(send),
        recv_(recv),
        block_bytes_(operation.count * bytesOf(operation.type)) {
    const auto ranks = static_cast<std::size_t>(nranks_);
    const bool sends_all = operation.kind == Kind::kReduceScatter || operation.kind == Kind::kAllToAll;
    send_bytes_ = sends_all ? block_bytes_ * ranks : block_bytes_;
    if (operation.kind == Kind::kBroadcast && rank_ != 0) send_bytes_ = 0;
  }

  void write(std::uint64_t iteration) const {
    rewrite(send_, send_bytes_, patternOf(operation_.type, inputOf(rank_, iteration)));
  }

  bool read(std::uint64_t iteration) const {
    switch (operation_.kind) {
      case Kind::kReduce:
        return rank_ != 0 || block(0, sum(iteration));
      case Kind::kAllReduce:
      case Kind::kReduceScatter:
        return block(0, sum(iteration));
      case Kind::kBroadcast:
        return block(0, inputOf(0, iteration));
      case Kind::kSendRecv:
        return block(0, inputOf((rank_ + nranks_ - 1) % nranks_, iteration));
      case Kind::kAllGather:
      case Kind::kAllToAll:
        break;
    }
    bool good = true;
    for (int rank = 0; rank < nranks_; ++rank) good = block(rank, inputOf(rank, iteration)) && good;
    return good;
  }

 private:
  bool block(int index, int value) const {
    return holds(recv_ + static_cast<std::size_t>(index) * block_bytes_, block_bytes_,
                 patternOf(operation_.type, value));
  }

  int sum(std::uint64_t iteration) const {
    int total = 0;
    for (int rank = 0; rank < nranks_; ++rank) total += inputOf(rank, iteration);
    return total;
  }

  int rank_;
  int nranks_;
  Operation operation_;
  std::byte* send_;
  std::byte* recv_;
  std::size_t block_bytes_;
  std::size_t send_bytes_;
};

}  // namespace

Operation operationOf(Kind kind, Type type, std::size_t bytes, int nranks) {
  const std::size_t count = bytes / bytesOf(type);
  return {kind, type, dealsOutBlocks(kind) ? count / static_cast<std::size_t>(nranks) : count};
}

Timing measure(Peer& peer, const Operation& operation, const LoopSettings& settings, std::byte* send,
               std::byte* recv) {
  if (settings.in_place || operation.kind == Kind::kBroadcast) send = recv;
  const Toucher toucher(peer, operation, send, recv);
  Timing timing;
  std::uint64_t wrong = 0;
  std::uint64_t done = 0;  // numbers the iterations, so that an old result is not taken for a new one

  const auto stretch = [&](std::uint64_t iterations, bool with_call) {
    peer.largest(0);
    const double start = nowMicroseconds();
    for (std::uint64_t i = 0; i < iterations; ++i, ++done) {
      toucher.write(done);
      if (with_call) peer.call(operation, send, recv);
      const bool good = toucher.read(done);
      if (with_call && !good) ++wrong;
    }
    const double own = nowMicroseconds() - start;
    return peer.largest(own) / static_cast<double>(iterations);
  };

  // Warm-up: longer and longer stretches, until one shows how many iterations fill the budget. One more, and
  // the faster counts: a stretch in which somebody else had the core would leave too few iterations.
  std::uint64_t iterations = kFewest;
  double each = stretch(iterations, true);
  while (iterations < kMost && each * static_cast<double>(iterations) < settings.budget_us / 4) {
    iterations *= 4;
    each = stretch(iterations, true);
  }
  each = std::min(each, stretch(iterations, true));
  iterations = std::clamp(static_cast<std::uint64_t>(settings.budget_us / each), kFewest, kMost);
  for (int sample = 0; sample < settings.samples; ++sample) {
    timing.loop_us.push_back(stretch(iterations, true));
    timing.touch_us.push_back(stretch(iterations, false));
  }
  timing.iterations = iterations;
  timing.wrong = static_cast<std::uint64_t>(peer.largest(static_cast<double>(wrong)));
  return timing;
}

}  // namespace tutti::peers
