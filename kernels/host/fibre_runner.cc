#include "kernels/host/fibre_runner.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tutti {
namespace {

/// Rounds with progress after which the monitors get a turn too: a strand may wait for a dead rank while
/// others go on.
constexpr std::uint32_t kRoundsBetweenInspections = 64;
constexpr auto kInspectEvery = std::chrono::milliseconds(20);

}  // namespace

std::size_t FibreRunner::add(Body body, std::size_t after) {
  strands_.push_back({.body = std::move(body), .after = after, .fibre = nullptr});
  return strands_.size() - 1;
}

void FibreRunner::run() {
  if (strands_.size() == 1) return strands_[0].body(nullptr);
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < strands_.size(); ++i) active.push_back(i);
  Pace pace(spins_);
  std::uint32_t rounds = 0;
  while (!active.empty()) {
    bool progress = false;
    for (const std::size_t number : active) progress = visit(number) || progress;
    std::erase_if(active, [this](std::size_t number) { return strands_[number].ended; });
    if (progress) {
      pace = Pace(spins_);
      if (++rounds % kRoundsBetweenInspections == 0) inspectWaits();
    } else if (pace.step(anyProgress())) {
      inspectWaits();
    }
  }
  if (thrown_) std::rethrow_exception(thrown_);
}

/// Lets a strand run if it can. True when it did.
bool FibreRunner::visit(std::size_t number) {
  Strand& strand = strands_[number];
  if (strand.fibre == nullptr) {
    if (strand.after != kNone && !strands_[strand.after].ended) return false;
    if (!start(strand)) return strand.ended;
  } else {
    Progress* progress = strand.wait->context.progress;
    if (progress != nullptr) progress->poll(strand.wait->peer);
    // The question comes before the fault: what has arrived is received, as in a wait without a runner.
    strand.wait->answer = ask(number, strand.wait->ready);
    if (!strand.wait->answer && !strand.wait->context.fault.tripped()) return false;
  }
  resume(number);
  return true;
}

/// False when there is no memory for a stack: the strand then starts when others have ended; if there are
/// none, it ends unstarted.
bool FibreRunner::start(Strand& strand) {
  try {
    strand.fibre = std::make_unique<Fibre>([this, &strand](Fibre&) {
      try {
        strand.body(this);
      } catch (...) {
        if (!thrown_) thrown_ = std::current_exception();
      }
      strand.ended = true;
    });
    return true;
  } catch (const std::bad_alloc&) {
    if (std::ranges::none_of(strands_, [](const Strand& other) { return other.fibre != nullptr; })) {
      thrown_ = std::current_exception();
      strand.ended = true;
    }
    return false;
  }
}

/// Where an idle thread naps: with the network links of some strand, if any has them.
Progress* FibreRunner::anyProgress() const {
  for (const Strand& strand : strands_) {
    if (strand.wait != nullptr && strand.wait->context.progress != nullptr)
      return strand.wait->context.progress;
  }
  return nullptr;
}

void FibreRunner::resume(std::size_t number) {
  current_ = number;
  strands_[number].fibre->resume();
  current_ = kNone;
  if (strands_[number].ended) strands_[number].fibre.reset();  // its stack serves the next strand
}

bool FibreRunner::wait(const WaitContext& context, int peer, ReadyQuestion ready) {
  Wait wait{.context = context, .peer = peer, .ready = ready, .time = {}, .next_inspection = {}};
  Strand& strand = strands_[current_];
  strand.wait = &wait;
  strand.fibre->suspend();
  strand.wait = nullptr;
  return wait.answer;
}

void FibreRunner::inspectWaits() {
  const auto now = Clock::now();
  for (const Strand& strand : strands_) {
    if (strand.wait == nullptr) continue;
    Wait& wait = *strand.wait;
    if (!wait.is_timed) {
      wait.is_timed = true;
      wait.time.start(now);
      wait.next_inspection = now + kInspectEvery;
    } else if (now >= wait.next_inspection) {
      wait.next_inspection = now + kInspectEvery;
      wait.context.monitor.inspect(wait.peer, wait.time.look(now));
    }
  }
}

}  // namespace tutti
