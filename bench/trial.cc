#include "bench/trial.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "bench/say.h"

namespace tutti::perf {
namespace {

constexpr int kGarbage = 0xD7;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

}  // namespace

Trial::Trial(const Collective& collective, const Rank& rank, const Case& item, const Problem& problem,
             bool in_place)
    : collective_(collective),
      rank_(rank),
      case_(item),
      problem_(problem),
      in_place_(in_place),
      region_bytes_(in_place ? item.span_bytes : rank.layout().recv * item.element_bytes),
      send_bytes_(rank.layout().send * item.element_bytes),
      region_(rank.seat().device(), rank.seat().stream(), rank.operands(false, 0).recv - kGuardBytes,
              region_bytes_ + 2 * kGuardBytes) {
  if (!in_place) {
    input_.emplace(rank.seat().device(), rank.seat().stream(), rank.operands(false, 0).send, send_bytes_);
  }
  std::memset(region_.data() + kGuardBytes, kGarbage, region_bytes_);
  paintGuards(region_.data() + kGuardBytes, region_bytes_);
  fillInput(problem, rank.number(), 0, rank.layout().send, sent());
  region_.store();
  if (input_) input_->store();
}

std::uint64_t Trial::verify(const std::optional<Corruption>& corruption) {
  region_.load();
  if (input_) input_->load();
  corrupt(corruption);
  const std::size_t damaged = damagedGuards(region_.data() + kGuardBytes, region_bytes_);
  if (damaged > 0) {
    sayError(fmt::format("rank {}: {}: {} bytes written outside of the buffer", rank_.number(),
                         case_.describe(in_place_), damaged));
  }
  return verifyValues() + damaged;
}

std::byte* Trial::received() {
  const std::size_t start = in_place_ ? rank_.layout().in_place_recv * case_.element_bytes : 0;
  return region_.data() + kGuardBytes + start;
}

std::byte* Trial::sent() {
  if (input_) return input_->data();
  return region_.data() + kGuardBytes + rank_.layout().in_place_send * case_.element_bytes;
}

std::uint64_t Trial::verifyValues() {
  const std::string where = fmt::format("rank {}: {}: ", rank_.number(), case_.describe(in_place_));
  const bool bystander = collective_.leavesOthersAlone() && rank_.number() != case_.root;
  Mismatches values;
  if (!bystander) {
    values = compare();
  } else if (!in_place_) {
    values = checkUntouched(received(), region_bytes_, std::byte{kGarbage});
  }
  if (values.wrong > 0) {
    sayError(where + fmt::format("first wrong {}: index {}, expected {}, got {} ({} wrong in all)",
                                 bystander ? "byte" : "element", values.first, values.expected, values.got,
                                 values.wrong));
  }
  Mismatches input;
  if (!in_place_ || bystander) {
    input = checkCopy(problem_, rank_.number(), 0, rank_.layout().send, sent());
  }
  if (input.wrong > 0) sayError(where + fmt::format("the input was changed, first at index {}", input.first));
  return values.wrong + input.wrong;
}

Mismatches Trial::compare() {
  const Layout& layout = rank_.layout();
  const auto own = static_cast<std::size_t>(rank_.number());
  const int nranks = problem_.nranks;
  switch (collective_.outcome) {
    case Outcome::kReduction:
    case Outcome::kReductionAtRoot:
      return checkReduction(problem_, 0, layout.recv, received());
    case Outcome::kReductionBlock:
      return checkReduction(problem_, own * layout.recv, layout.recv, received());
    case Outcome::kRoot:
      return checkCopy(problem_, case_.root, 0, layout.recv, received());
    case Outcome::kPrevious:
      return checkCopy(problem_, (rank_.number() + nranks - 1) % nranks, 0, layout.recv, received());
    case Outcome::kRootBlock:
      return checkCopy(problem_, case_.root, own * layout.recv, layout.recv, received());
    case Outcome::kGather:
    case Outcome::kGatherAtRoot:
    case Outcome::kTranspose:
      break;
  }
  Mismatches found;
  std::size_t start = 0;
  for (int rank = 0; rank < nranks; ++rank) {
    const std::size_t count = layout.recv_blocks.empty() ? layout.param : layout.recv_blocks[index(rank)];
    const std::byte* block = received() + start * case_.element_bytes;
    found.merge(checkCopy(problem_, rank, firstFrom(rank), count, block), start);
    start += count;
  }
  return found;
}

/// Where in the input of `rank` the block starts that this rank gets.
std::size_t Trial::firstFrom(int rank) const {
  if (collective_.outcome != Outcome::kTranspose) return 0;
  const auto own = static_cast<std::size_t>(rank_.number());
  if (collective_.traffic == nullptr) return own * rank_.layout().param;
  const auto theirs =
      collective_.layout(case_.asked_bytes, case_.element_bytes, problem_.nranks, rank).send_blocks;
  return std::accumulate(theirs.begin(), theirs.begin() + static_cast<std::ptrdiff_t>(own), std::size_t{0});
}

/// Flips the second highest bit: of the exponent, so that no tolerance hides it, and not only a zero's sign.
void Trial::corrupt(const std::optional<Corruption>& corruption) {
  if (!corruption || corruption->rank != rank_.number() || corruption->index >= rank_.layout().recv) return;
  received()[(corruption->index + 1) * case_.element_bytes - 1] ^= std::byte{0x40};
}

}  // namespace tutti::perf
