// How some ranks of a communicator come together again, to make another one.
//
// The first of them opens a rendezvous and writes its unique id into its line of the status board, where the
// others look for it; the control plane carries the line to other hosts. Links play no part: ranks meet while
// operations are queued, and after a fault.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "nccl.h"
#include "runtime/core/settings.h"
#include "runtime/process.h"
#include "runtime/wiring.h"

namespace tutti {

/// The meetings of one rank. One thread at a time holds one.
class Meetings {
 public:
  Meetings(Process& process, const Settings& settings, const Wiring& wiring, int rank)
      : process_(process), settings_(settings), wiring_(wiring), rank_(rank) {}

  /// The id by which `ranks`, in this order, can join each other; this rank is one of them, and all call it.
  /// A unique id serves one communicator, or one Bootstrap. `purpose` ("ncclCommSplit") tells meetings of the
  /// same ranks apart. `check` is asked meanwhile: what it throws ends the wait. Throws Error naming the rank
  /// that did not call the meeting within TUTTI_INIT_TIMEOUT.
  ncclUniqueId call(const std::vector<int>& ranks, const char* purpose, const std::function<void()>& check);

  /// A rendezvous where this rank is reached by the others.
  ncclUniqueId open() const;

  /// Throws Error(ncclRemoteError) naming one of `ranks` that has left or whose process has ended, or the
  /// fault that one published, unless that is accepted.
  enum class Faults : std::uint8_t { refused, accepted };
  void requireAlive(const std::vector<int>& ranks, Faults faults) const;

 private:
  ncclUniqueId await(int caller, std::uint64_t key, const char* purpose, const std::function<void()>& check);

  Process& process_;
  const Settings& settings_;
  const Wiring& wiring_;
  int rank_;
  std::uint64_t called_ = 0;               ///< meetings that this rank has called
  std::map<int, std::uint64_t> attended_;  ///< by caller: the number of the last one
};

}  // namespace tutti
