#include "runtime/answers.h"

#include "runtime/bootstrap/control_tree.h"

namespace tutti {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kSilence = std::chrono::seconds(1);

std::int64_t now() {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Answers::Answers(int nranks, int rank) : rank_(rank), missing_since_(static_cast<std::size_t>(nranks)) {}

bool Answers::isTimeToAsk() {
  const std::int64_t time = now();
  std::int64_t last = asked_at_.load(std::memory_order_relaxed);
  return time - last >= nanoseconds(kAskEvery).count() &&
         asked_at_.compare_exchange_strong(last, time, std::memory_order_relaxed);
}

void Answers::told(const std::vector<bool>& answered) {
  const std::int64_t time = now();
  // Nobody asked for a while: who was late before has not been missing since.
  const bool is_anew = time - told_at_.load(std::memory_order_relaxed) > kSilence.count();
  for (std::size_t rank = 0; rank < answered.size(); ++rank) {
    auto& since = missing_since_[rank];
    if (answered[rank]) {
      since.store(0, std::memory_order_release);
    } else if (is_anew || since.load(std::memory_order_relaxed) == 0) {
      since.store(time, std::memory_order_release);
    }
  }
  told_at_.store(time, std::memory_order_release);
}

/// Whether tables come when they are asked for.
bool Answers::isAnswered() const {
  return asked_at_.load(std::memory_order_relaxed) - told_at_.load(std::memory_order_acquire) <=
         kSilence.count();
}

bool Answers::isKnown(int rank) const {
  return isAnswered() && missing_since_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire) == 0;
}

bool Answers::isSilent(int rank) const {
  // Nothing comes at all: then it is the way to the root that is blocked, as far as is known at its first
  // step.
  if (!isAnswered()) return rank_ != 0 && rank == treeParent(rank_);
  if (isKnown(rank) || missingFor(rank) < kSilence) return false;
  // Below a rank that is silent itself nothing is known.
  for (int above = rank; above != 0;) {
    above = treeParent(above);
    // Who is late once above it leaves out this one, too, which was missing before.
    if (missingFor(rank) - missingFor(above) < kSilence) return false;
  }
  return true;
}

nanoseconds Answers::missingFor(int rank) const {
  const std::int64_t since = missing_since_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  return nanoseconds(since == 0 ? 0 : now() - since);
}

}  // namespace tutti
