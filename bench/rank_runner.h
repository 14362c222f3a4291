// One rank's part of a run: the sweep over types, operations or roots, and sizes.
//
// Every rank goes through the same rows in the same order. For each row, first out of place, then in place:
//
//   warm-up → barrier → n iterations of m operations, timed → times gathered → c checked operations
//
// The timed operations walk through the buffers, so that small messages do not always hit the same cache
// lines (as nccl-tests does); the checked ones run on fresh inputs, a garbage-filled output and painted
// guards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/buffers.h"
#include "bench/collective.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/results.h"
#include "bench/verify.h"
#include "bench/watchdog.h"
#include "tutti/tutti.h"

namespace tutti::perf {

/// The arguments of one call.
struct Invocation {
  const void* send;
  void* recv;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  ncclComm_t comm;
};
using Call = ncclResult_t (*)(const Invocation&);

class RankRunner {
 public:
  /// `report` is null except on rank 0. All arguments outlive the object.
  RankRunner(const Options& options, const Collective& collective, Call call, Comm& comm, Report* report);

  /// The whole run; collective. Throws Error when an operation fails.
  Totals run();

  /// The time limit passed, and this rank has said so.
  bool timedOut() const { return watchdog_.fired(); }

 private:
  struct Case {
    ncclDataType_t type;
    std::optional<ncclRedOp_t> op;
    int root;  ///< -1 where there is none
    std::size_t element_bytes;
    Layout layout;
    std::size_t spanBytes() const { return layout.span() * element_bytes; }
  };
  struct Operands {
    std::byte* send;
    std::byte* recv;
  };

  std::vector<Case> cases() const;
  Row runCase(const Case& item);
  Measurement measure(const Case& item, bool in_place);
  std::vector<double> timeIterations(const Case& item, bool in_place);
  std::uint64_t checkOnce(const Case& item, bool in_place);
  Mismatches compare(const Case& item, const Problem& problem, const std::byte* received) const;
  void corrupt(const Case& item, std::byte* received) const;

  Operands operands(const Case& item, bool in_place, std::size_t shift_bytes) const;
  void invoke(const Case& item, const Operands& operands);
  std::uint64_t checkResult(const Case& item, const Problem& problem, const Operands& at,
                            bool in_place) const;
  std::string describe(const Case& item, bool in_place) const;
  bool stopRequested();

  const Options& options_;
  const Collective& collective_;
  const Call call_;
  Comm& comm_;
  Report* const report_;
  const int rank_;
  const int nranks_;
  const std::size_t largest_bytes_;
  RankBuffers buffers_;
  ncclRedOp_t call_op_ = ncclSum;  ///< what the calls of the current case get
  Watchdog watchdog_;
  std::uint64_t repetition_ = 0;  ///< counts checks, so that stale data of an earlier one is seen
};

}  // namespace tutti::perf
