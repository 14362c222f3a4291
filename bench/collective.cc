#include "bench/collective.h"

#include <algorithm>
#include <numeric>

#include "bench/traffic.h"

namespace tutti::perf {
namespace {

constexpr std::size_t kBlockAlignBytes = 16;

/// Of all-to-all with blocks of different sizes.
Layout unevenLayout(const Traffic& traffic, std::size_t block, std::size_t element_bytes, int nranks,
                    int rank) {
  const std::size_t total = block * static_cast<std::size_t>(nranks) * element_bytes;
  Layout layout{.param = traffic.matrixRanks() == 0 ? block : 0};
  for (int peer = 0; peer < nranks; ++peer) {
    layout.send_blocks.push_back(traffic.bytes(rank, peer, nranks, total) / element_bytes);
    layout.recv_blocks.push_back(traffic.bytes(peer, rank, nranks, total) / element_bytes);
  }
  layout.send = std::accumulate(layout.send_blocks.begin(), layout.send_blocks.end(), std::size_t{0});
  layout.recv = std::accumulate(layout.recv_blocks.begin(), layout.recv_blocks.end(), std::size_t{0});
  return layout;
}

}  // namespace

Layout Collective::layout(std::size_t bytes, std::size_t element_bytes, int nranks, int rank) const {
  const std::size_t count = bytes / element_bytes;
  const std::size_t quantum = kBlockAlignBytes / element_bytes;
  const auto ranks = static_cast<std::size_t>(nranks);
  const std::size_t block = count / ranks / quantum * quantum;
  const std::size_t block_start = block * static_cast<std::size_t>(rank);
  switch (outcome) {
    case Outcome::kReductionBlock:
    case Outcome::kRootBlock:
      return {.param = block, .send = block * ranks, .recv = block, .in_place_recv = block_start};
    case Outcome::kGather:
    case Outcome::kGatherAtRoot:
      return {.param = block, .send = block, .recv = block * ranks, .in_place_send = block_start};
    case Outcome::kTranspose:
      if (traffic != nullptr) return unevenLayout(*traffic, block, element_bytes, nranks, rank);
      return {.param = block, .send = block * ranks, .recv = block * ranks};
    case Outcome::kReduction:
    case Outcome::kReductionAtRoot:
    case Outcome::kRoot:
    case Outcome::kPrevious:
      break;
  }
  return {.param = count, .send = count, .recv = count};
}

std::size_t Collective::span(std::size_t bytes, std::size_t element_bytes, int nranks) const {
  const int differing = traffic != nullptr ? nranks : 1;
  std::size_t largest = 0;
  for (int rank = 0; rank < differing; ++rank) {
    largest = std::max(largest, layout(bytes, element_bytes, nranks, rank).span());
  }
  return largest;
}

double Collective::algBytes(std::size_t span_bytes, int nranks) const {
  const auto bytes = static_cast<double>(span_bytes);
  return hypercube ? bytes / nranks * (nranks - 1) : bytes;  // there, what is received
}

double Collective::busFactor(int nranks) const {
  const double n = nranks;
  if (hypercube) return 1;
  switch (outcome) {
    case Outcome::kReduction:
      return 2 * (n - 1) / n;
    case Outcome::kReductionBlock:
    case Outcome::kGather:
    case Outcome::kGatherAtRoot:
    case Outcome::kRootBlock:
    case Outcome::kTranspose:
      return (n - 1) / n;
    case Outcome::kReductionAtRoot:
    case Outcome::kRoot:
    case Outcome::kPrevious:
      break;
  }
  return 1;
}

}  // namespace tutti::perf
