// One checked operation on one rank: fresh inputs, a garbage-filled output and painted guards; afterwards,
// what became of them. All of it is written and read on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/case.h"
#include "bench/collective.h"
#include "bench/options.h"
#include "bench/problem.h"
#include "bench/rank.h"
#include "bench/verify.h"
#include "tools/device/memory.h"

namespace tutti::perf {

class Trial {
 public:
  /// Writes inputs, garbage and guards to the rank's buffers. All arguments outlive the object.
  Trial(const Collective& collective, const Rank& rank, const Case& item, const Problem& problem,
        bool in_place);

  /// After the operation. Returns the number of wrong elements, of the output and of the input, and of bytes
  /// written outside of the output; says the first ones on standard error.
  std::uint64_t verify(const std::optional<Corruption>& corruption);

 private:
  std::byte* received();
  std::byte* sent();
  Mismatches compare();
  std::size_t firstFrom(int rank) const;
  std::uint64_t verifyValues();
  void corrupt(const std::optional<Corruption>& corruption);

  const Collective& collective_;
  const Rank& rank_;
  const Case& case_;
  const Problem& problem_;
  const bool in_place_;
  std::size_t region_bytes_;  // that the operation may write to
  std::size_t send_bytes_;
  device::HostView region_;                // with its guards
  std::optional<device::HostView> input_;  // out of place; else it is in the region
};

}  // namespace tutti::perf
