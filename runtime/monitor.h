// Asks, during a long wait, whether it can still end well; and names the culprit when not.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/descriptor.h"
#include "runtime/core/fault.h"
#include "runtime/core/settings.h"
#include "runtime/core/wait.h"
#include "runtime/wiring.h"

namespace tutti {

/// One rank's view of the others during one operation at a time. Used by the thread that is in the call.
///
/// Looks, in this order: at faults that other ranks published (theirs is the first cause), at processes that
/// died and ranks that left before they completed this operation, at ranks that are in the same operation
/// with other arguments, and at the deadlines. Trips the fault cell on the first that it finds.
class Monitor final : public WaitMonitor {
 public:
  Monitor(const Wiring& wiring, int rank, const Settings& settings, FaultCell& fault,
          std::function<void(const std::string&)> warn);

  /// The operation that the following waits belong to.
  void begin(std::uint64_t operation, const Descriptor& descriptor);

  void inspect(int peer, std::chrono::nanoseconds waited) override;
  void differs(int peer, const Descriptor& theirs) override;

  /// Compares this operation with those of all ranks that have entered it; false, with the fault cell
  /// tripped, when one differs. For operations in which not every rank hears from another: whoever enters
  /// last sees them all.
  bool agree() { return !findMismatch(); }

 private:
  bool adoptFault();
  bool findDeparted();
  bool findMismatch();
  void checkDeadlines(int peer, std::chrono::nanoseconds waited);
  std::vector<int> absentRanks() const;
  std::string list(const std::vector<int>& ranks) const;
  std::string operationText() const;

  const Wiring& wiring_;
  int rank_;
  std::chrono::nanoseconds timeout_;
  std::chrono::nanoseconds stall_timeout_;
  FaultCell& fault_;
  std::function<void(const std::string&)> warn_;
  std::uint64_t operation_ = 0;
  Descriptor descriptor_;
  std::chrono::nanoseconds next_warning_{};
};

}  // namespace tutti
