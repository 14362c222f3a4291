// Calls of one operation that belong together.
#pragma once

#include "nccl.h"

namespace tutti::perf {

/// The result of `calls` inside a group, or of the group's end. The group is ended in any case.
template <class Calls>
ncclResult_t inGroup(const Calls& calls) {
  const ncclResult_t started = ncclGroupStart();
  if (started != ncclSuccess) return started;
  const ncclResult_t called = calls();
  const ncclResult_t ended = ncclGroupEnd();
  return called != ncclSuccess ? called : ended;
}

}  // namespace tutti::perf
