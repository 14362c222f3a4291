// Two ranks send each other messages of every kind at once, and check each byte of them.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/transports/tcp_harness.h"

namespace tutti::test {

/// Equal on both sides.
struct Talk {
  std::uint64_t seed = 1;
  std::uint64_t messages = 100;  ///< of each side
  std::uint32_t max_bytes = 1000;
  std::uint32_t lane = 0;
  bool inline_only = false;  ///< no references, no results
  bool lends = true;         ///< references, which GPUs' slots do not have
};

/// One rank's side of one pair. Counts on a link that was not used before.
class Conversation {
 public:
  Conversation(Network& network, int self, int peer, const Talk& talk)
      : network_(network),
        self_(self),
        peer_(peer),
        talk_(talk),
        out_(network.outbound(talk.lane, peer)),
        in_(network.inbound(talk.lane, peer)) {}

  /// Inside enter() and leave().
  void run() {
    waitFor(network_, peer_, [&] { return step(); });
    for (std::uint64_t sequence = home_; sequence < talk_.messages; ++sequence) bringHome(sequence);
    for (const Loan& loan : loans_) {
      if (loan.returns && !isResult(loan.to, loan.sequence)) fail("a wrong result", loan.sequence);
      if (!hasPattern(loan.from, self_, loan.sequence)) fail("lent data was changed", loan.sequence);
    }
  }

 private:
  enum class Kind { plain, answered, lent, lent_answered };

  struct Loan {
    std::uint64_t sequence;
    bool returns;
    std::vector<std::byte> from;
    std::vector<std::byte> to;
  };

  std::uint64_t random(int from, std::uint64_t sequence) const {
    std::uint64_t x =
        talk_.seed * 0x9e3779b97f4a7c15U + sequence * 0xbf58476d1ce4e5b9U + static_cast<std::uint64_t>(from);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
  std::uint32_t bytesOf(int from, std::uint64_t sequence) const {
    const std::uint64_t x = random(from, sequence);
    if (x % 16 == 0) return 0;
    if (x % 16 == 1) return talk_.max_bytes;
    return static_cast<std::uint32_t>((x >> 8) % (talk_.max_bytes + 1));
  }
  Kind kindOf(int from, std::uint64_t sequence) const {
    if (talk_.inline_only) return Kind::plain;
    return static_cast<Kind>(random(from, sequence) >> 40 & (talk_.lends ? 3U : 1U));
  }
  static bool isAnswered(Kind kind) { return kind == Kind::answered || kind == Kind::lent_answered; }

  [[noreturn]] void fail(const std::string& what, std::uint64_t sequence) const {
    throw std::runtime_error(what + " in message " + std::to_string(sequence) + " at rank " +
                             std::to_string(self_));
  }

  /// True when all is done.
  bool step() {
    bool moved = false;
    while (sent_ < talk_.messages && hasRoom(out_)) {
      for (; home_ + out_.slot_count <= sent_; ++home_) bringHome(home_);
      sendOne();
      moved = true;
    }
    while (releasedOn(in_) < talk_.messages && postedOn(in_) > releasedOn(in_)) {
      receiveOne();
      moved = true;
    }
    if (moved) network_.push(peer_);
    return sent_ == talk_.messages && releasedOn(in_) == talk_.messages && releasedOn(out_) >= awaited_;
  }

  void sendOne() {
    const Kind kind = kindOf(self_, sent_);
    const std::uint32_t bytes = bytesOf(self_, sent_);
    SlotHeader header{.descriptor = {.count = sent_ * 7},
                      .returns = static_cast<std::uint16_t>(isAnswered(kind) ? 1 : 0),
                      .bytes = bytes,
                      .to = 12345,
                      .scale = sent_ * 3};
    if (kind == Kind::lent || kind == Kind::lent_answered) {
      Loan& loan = loans_.emplace_back(Loan{.sequence = sent_,
                                            .returns = isAnswered(kind),
                                            .from = std::vector<std::byte>(bytes),
                                            .to = std::vector<std::byte>(bytes)});
      fillPattern(loan.from, self_, sent_);
      header.kind = SlotKind::address;
      header.from = std::bit_cast<std::uint64_t>(loan.from.data());
      header.to = std::bit_cast<std::uint64_t>(loan.to.data());
    } else {
      fillPattern({out_.slot(sent_), bytes}, self_, sent_);
    }
    if (kind != Kind::plain) awaited_ = sent_ + 1;
    publish(out_, header);
    ++sent_;
  }

  bool isResult(std::span<const std::byte> bytes, std::uint64_t sequence) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != resultOf(patternAt(self_, sequence, i))) return false;
    }
    return true;
  }

  /// A result in a slot of this side's ring.
  void bringHome(std::uint64_t sequence) const {
    if (kindOf(self_, sequence) != Kind::answered) return;
    const SlotHeader& header = out_.header(sequence);
    if (header.to != 12345) fail("the sender's own header was changed", sequence);
    if (!isResult({out_.slot(sequence), header.bytes}, sequence))
      fail("a wrong result in its slot", sequence);
  }

  void receiveOne() {
    const std::uint64_t sequence = releasedOn(in_);
    const SlotHeader header = in_.header(sequence);
    const Kind kind = kindOf(peer_, sequence);
    const bool fits = header.sequence == sequence && header.descriptor.count == sequence * 7 &&
                      header.kind == SlotKind::inline_data && header.returns == (isAnswered(kind) ? 1 : 0) &&
                      header.bytes == bytesOf(peer_, sequence) && header.scale == sequence * 3;
    if (!fits) fail("a wrong header", sequence);
    const std::span<std::byte> data{in_.slot(sequence), header.bytes};
    if (!hasPattern(data, peer_, sequence)) fail("wrong data", sequence);
    if (isAnswered(kind)) {
      for (std::byte& byte : data) byte = resultOf(byte);
    }
    releaseOne(in_);
  }

  Network& network_;
  int self_;
  int peer_;
  Talk talk_;
  LinkView out_;
  LinkView in_;
  std::uint64_t sent_ = 0;
  std::uint64_t home_ = 0;     ///< messages before this one are out of their slots
  std::uint64_t awaited_ = 0;  ///< messages before this one must come back
  std::deque<Loan> loans_;
};

/// Serves peers as the Watcher does, until all ranks have come so far.
inline void serveUntil(Network& network, const std::atomic<int>& arrived, int nranks) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (arrived.load() < nranks) {
    network.visit();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("the other rank is late");
  }
}

/// Whether the ranks know each other to be done before they say good-bye: a good-bye that is lost is none.
enum class Parting { by_links, announced };

/// Ranks 0 and 1 talk, then drain. Returns what went wrong.
template <class AnyCluster>
std::vector<std::string> converse(const AnyCluster& cluster, const Talk& talk,
                                  Parting parting = Parting::by_links) {
  std::atomic<int> arrived{0};
  const auto side = [&](int self) {
    Network& network = cluster[self];
    try {
      Inside inside(network);
      Conversation(network, self, 1 - self, talk).run();
    } catch (...) {
      ++arrived;
      throw;
    }
    ++arrived;
    serveUntil(network, arrived, 2);
    if (parting == Parting::announced) network.retire(1 - self);
    if (!network.drain(std::chrono::steady_clock::now() + seconds(20)))
      throw std::runtime_error("not drained");
  };
  std::vector<std::string> errors = together({[&] { side(0); }, [&] { side(1); }});
  for (const std::string& text : cluster.failed()) errors.push_back(text);
  return errors;
}

}  // namespace tutti::test
