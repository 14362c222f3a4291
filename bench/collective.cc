#include "bench/collective.h"

namespace tutti::perf {
namespace {

constexpr std::size_t kBlockAlignBytes = 16;

}  // namespace

Layout Collective::layout(std::size_t bytes, std::size_t element_bytes, int nranks, int rank) const {
  const std::size_t count = bytes / element_bytes;
  const std::size_t quantum = kBlockAlignBytes / element_bytes;
  const auto ranks = static_cast<std::size_t>(nranks);
  const std::size_t block = count / ranks / quantum * quantum;
  const std::size_t block_start = block * static_cast<std::size_t>(rank);
  switch (outcome) {
    case Outcome::kReductionBlock:
      return {.param = block, .send = block * ranks, .recv = block, .in_place_recv = block_start};
    case Outcome::kGather:
      return {.param = block, .send = block, .recv = block * ranks, .in_place_send = block_start};
    case Outcome::kTranspose:
      return {.param = block, .send = block * ranks, .recv = block * ranks};
    case Outcome::kReduction:
    case Outcome::kReductionAtRoot:
    case Outcome::kRoot:
    case Outcome::kPrevious:
      break;
  }
  return {.param = count, .send = count, .recv = count};
}

double Collective::busFactor(int nranks) const {
  const double n = nranks;
  switch (outcome) {
    case Outcome::kReduction:
      return 2 * (n - 1) / n;
    case Outcome::kReductionBlock:
    case Outcome::kGather:
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
