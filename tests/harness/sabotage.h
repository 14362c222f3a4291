// Programs that are broken on purpose: an executor that misbehaves once, for any program. Every bug must be
// found by the proofs; a bug that is not found means that the proofs prove nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/executor.h"

namespace tutti::test {

enum class Bug {
  wrong_chunk,         ///< an input operand is taken from a neighbouring place
  lost_release,        ///< a slot is never given back
  early_post,          ///< a slot is published before it is filled
  double_post,         ///< a slot is published twice
  early_credit,        ///< a slot is given back before it is read
  missing_last_chunk,  ///< the last result is not written
  missing_await,       ///< a slot is read before it holds data
  missing_reserve,     ///< a slot is filled before it is free
};

inline constexpr Bug kAllBugs[] = {Bug::wrong_chunk,   Bug::lost_release,   Bug::early_post,
                                   Bug::double_post,   Bug::early_credit,   Bug::missing_last_chunk,
                                   Bug::missing_await, Bug::missing_reserve};

/// Passes verbs on to `exec`, and commits the bug at the `at`-th occasion.
template <Executor E>
class Sabotaged {
 public:
  Sabotaged(E& exec, Bug bug, std::uint64_t at) : exec_(exec), bug_(bug), at_(at) {}

  bool await(Inbound in) {
    if (bug_ == Bug::missing_await && now()) return true;
    if (!exec_.await(in)) return false;
    if (bug_ == Bug::early_credit && now()) {
      exec_.release(in);
      swallow_release_ = true;
    }
    return true;
  }

  bool reserve(Outbound out) { return (bug_ == Bug::missing_reserve && now()) || exec_.reserve(out); }

  bool combine(Operands dsts, Operands srcs, std::uint64_t n, Last last) {
    std::vector<Operand> sources(srcs.begin(), srcs.end());
    if (bug_ == Bug::wrong_chunk && n > 0 && sources.back().where == Operand::Where::input && now()) {
      sources.back().offset ^= 1;
    }
    if (bug_ == Bug::missing_last_chunk && last == Last::yes && n > 0 && now()) return true;
    for (const Operand& dst : dsts) {
      if (bug_ == Bug::early_post && dst.where == Operand::Where::outbound_slot && n > 0 && now()) {
        exec_.post(Outbound{dst.link}, n);
        swallow_post_ = true;
      }
    }
    return exec_.combine(dsts, {sources.data(), sources.size()}, n, last);
  }

  void post(Outbound out, std::uint64_t n) {
    if (swallow_post_) {
      swallow_post_ = false;
      return;
    }
    exec_.post(out, n);
    if (bug_ == Bug::double_post && now()) exec_.post(out, n);
  }

  void release(Inbound in) {
    if (swallow_release_) {
      swallow_release_ = false;
      return;
    }
    if (bug_ == Bug::lost_release && now()) return;
    exec_.release(in);
  }

 private:
  bool now() { return occasion_++ == at_; }

  E& exec_;
  Bug bug_;
  std::uint64_t at_;
  std::uint64_t occasion_ = 0;
  bool swallow_post_ = false;
  bool swallow_release_ = false;
};

}  // namespace tutti::test
