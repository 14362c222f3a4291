// Programs that are broken on purpose: an executor that misbehaves once, for any program. Every bug must be
// found by the proofs; a bug that is not found means that the proofs prove nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/executor.h"
#include "runtime/core/types.h"

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
  missing_drain,       ///< the program goes on before what it lent has come back
  missing_result,      ///< a loan is given back without the result that it asks for
  early_reuse,         ///< lent memory is written while the peer may use it
};

inline constexpr Bug kAllBugs[] = {Bug::wrong_chunk,    Bug::lost_release,    Bug::early_post,
                                   Bug::double_post,    Bug::early_credit,    Bug::missing_last_chunk,
                                   Bug::missing_await,  Bug::missing_reserve, Bug::missing_drain,
                                   Bug::missing_result, Bug::early_reuse};

/// The root that gives rank 1, which misbehaves, slots with data in them.
constexpr int rootForBugs(Collective collective) { return collective == Collective::gather ? 1 : 0; }

/// Passes verbs on to `exec`, and commits the bug at the `at`-th occasion; then sets *committed. A program
/// that gives a bug no occasion proves nothing about it.
template <Executor E>
class Sabotaged {
 public:
  Sabotaged(E& exec, Bug bug, std::uint64_t at, bool* committed)
      : exec_(exec), bug_(bug), at_(at), committed_(committed) {}

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
    for (std::uint32_t i = 0; i < srcs.size(); ++i) {
      Operand source = srcs[i];
      if (bug_ != Bug::wrong_chunk || n == 0 || source.where != Operand::Where::input || !now()) continue;
      source.offset ^= 1;
      srcs = srcs.with(static_cast<std::int32_t>(i), source);
    }
    for (std::uint32_t i = 0; i < dsts.size(); ++i) {
      const bool is_result = dsts[i].where == Operand::Where::inbound_slot;
      if (bug_ != Bug::missing_result || n == 0 || !is_result || !now()) continue;
      if (dsts.size() == 1) return true;
      dsts = dsts.without(static_cast<std::int32_t>(i));
      break;
    }
    if (bug_ == Bug::missing_last_chunk && last == Last::yes && n > 0 && now()) return true;
    for (std::uint32_t i = 0; i < dsts.size(); ++i) {
      const Operand dst = dsts[i];
      if (bug_ == Bug::early_post && dst.where == Operand::Where::outbound_slot && n > 0 && now()) {
        exec_.post(Outbound{dst.link}, n);
        swallow_post_ = true;
      }
    }
    return exec_.combine(dsts, srcs, n, last);
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

  void lend(Outbound out, std::uint64_t n, const Loan& loan) {
    Loan lent = loan;
    if (bug_ == Bug::wrong_chunk && n > 1 && now()) lent.from.offset ^= 1;
    exec_.lend(out, n, lent);
    if (bug_ == Bug::double_post && now()) exec_.lend(out, n, lent);
    if (bug_ == Bug::early_reuse && n > 0 && loan.returns && now())
      exec_.combine({loan.to}, {loan.from}, n, Last::no);
  }

  bool drain(Outbound out) { return (bug_ == Bug::missing_drain && now()) || exec_.drain(out); }

 private:
  bool now() {
    const bool is_now = occasion_++ == at_;
    *committed_ = *committed_ || is_now;
    return is_now;
  }

  E& exec_;
  Bug bug_;
  std::uint64_t at_;
  bool* committed_;
  std::uint64_t occasion_ = 0;
  bool swallow_post_ = false;
  bool swallow_release_ = false;
};

}  // namespace tutti::test
