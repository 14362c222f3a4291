// Messages between ranks that say whose they are, and the exchanges that are checked with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::test {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

/// What rank `from` sends to rank `to` as element i of message `message`.
inline std::int32_t element(int from, int to, int message, std::size_t i) {
  const auto whose = static_cast<std::uint32_t>((from * 64 + to) * 1000 + message);
  return static_cast<std::int32_t>(whose * 7919U + static_cast<std::uint32_t>(i));
}

inline std::vector<std::int32_t> message(int from, int to, int number, std::size_t count) {
  std::vector<std::int32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = element(from, to, number, i);
  return result;
}

/// Elements that `from` sends to `to`: the same on all ranks; a third of them 0.
inline std::size_t countOf(std::uint64_t seed, int from, int to) {
  std::mt19937_64 random(seed * 4096 + static_cast<std::uint64_t>(from * 64 + to));
  return random() % 3 == 0 ? 0 : random() % (random() % 4 == 0 ? 60'000 : 50);
}

/// All-to-all with a size of its own for each pair; zero sizes are posted by one side only now and then.
inline void allToAllV(const std::vector<Comm*>& comms, std::uint64_t seed) {
  const int nranks = comms[0]->size();
  const auto n = static_cast<std::size_t>(nranks);
  std::vector<std::vector<std::vector<std::int32_t>>> sent(comms.size());
  std::vector<std::vector<std::vector<std::int32_t>>> received(comms.size());
  Group group;
  for (std::size_t c = 0; c < comms.size(); ++c) {
    Comm& comm = *comms[c];
    const int self = comm.rank();
    sent[c].resize(n);
    received[c].resize(n);
    for (int peer = 0; peer < nranks; ++peer) {
      const auto p = static_cast<std::size_t>(peer);
      sent[c][p] = message(self, peer, 3, countOf(seed, self, peer));
      received[c][p].resize(countOf(seed, peer, self));
      const bool leaves_out_empty = (seed + p) % 2 == 0 && peer != self;
      if (!sent[c][p].empty() || !leaves_out_empty) comm.send(sent[c][p].data(), sent[c][p].size(), peer);
      comm.receive(received[c][p].data(), received[c][p].size(), peer);
    }
  }
  group.end();
  for (std::size_t c = 0; c < comms.size(); ++c) {
    const int self = comms[c]->rank();
    for (int peer = 0; peer < nranks; ++peer) {
      require(
          received[c][static_cast<std::size_t>(peer)] == message(peer, self, 3, countOf(seed, peer, self)),
          "rank " + std::to_string(self) + " got wrong data from rank " + std::to_string(peer) + ", seed " +
              std::to_string(seed));
    }
  }
}

}  // namespace tutti::test
