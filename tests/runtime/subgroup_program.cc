// One rank as a process, for subgroups_processes_test: `subgroup_program WHAT [ARG]`. Errors go to standard
// error with exit status 1.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/transfers.h"
#include "tutti/tutti.h"

namespace {

using tutti::check;
using tutti::Comm;

/// Halves of odd and even ranks, in reverse order, one of them split again.
void split(Comm& comm) {
  ncclComm_t child = nullptr;
  check(ncclCommSplit(comm.handle(), comm.rank() % 2, -comm.rank(), &child, nullptr));
  Comm half(child);
  tutti::test::require(half.size() == (comm.size() + 1 - comm.rank() % 2) / 2, "wrong size");
  tutti::test::require(half.rank() == half.size() - 1 - comm.rank() / 2, "wrong rank");
  tutti::test::conform(half, 7, 5, 100'000);
  check(ncclCommSplit(half.handle(), half.rank() == 0 ? NCCL_SPLIT_NOCOLOR : 1, 0, &child, nullptr));
  if (child != nullptr) {
    Comm rest(child);
    tutti::test::conform(rest, 8, 5, 10'000);
  }
  tutti::test::conform(comm, 9, 5, 10'000);
}

/// `victim` dies; the others hear of it and go on without it.
void shrinkAfterDeath(Comm& comm, int victim) {
  std::vector<float> data(1000);
  const auto reduce = [&] {
    return ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclSum, comm.handle(), nullptr);
  };
  if (comm.rank() == victim) {
    reduce();
    std::_Exit(0);
  }
  while (reduce() == ncclSuccess) {
  }
  ncclComm_t child = nullptr;
  check(ncclCommShrink(comm.handle(), &victim, 1, &child, nullptr, NCCL_SHRINK_ABORT));
  Comm rest(child);
  tutti::test::require(rest.size() == comm.size() - 1, "wrong size");
  tutti::test::require(rest.rank() == comm.rank() - (comm.rank() > victim ? 1 : 0), "wrong rank");
  tutti::test::conform(rest, 3, 5, 10'000);
}

/// `victim` dies instead of splitting.
void dieInsteadOfSplitting(Comm& comm, int victim) {
  comm.barrier();
  if (comm.rank() == victim) std::_Exit(0);
  ncclComm_t child = nullptr;
  check(ncclCommSplit(comm.handle(), 0, 0, &child, nullptr));
  Comm taken(child);
}

/// `other` makes a sum where all others split.
void differFromSplitting(Comm& comm, int other) {
  comm.barrier();
  std::vector<float> data(30);
  if (comm.rank() == other) return comm.allReduce(data.data(), data.data(), data.size(), ncclSum);
  ncclComm_t child = nullptr;
  check(ncclCommSplit(comm.handle(), 0, 0, &child, nullptr));
  Comm taken(child);
}

/// `absent` does nothing more, until it is killed.
void stayAway(Comm& comm, int absent) {
  comm.barrier();
  if (comm.rank() == absent) {
    for (;;) ::pause();
  }
  ncclComm_t child = nullptr;
  check(ncclCommSplit(comm.handle(), 0, 0, &child, nullptr));
  Comm taken(child);
}

/// `other` shrinks without rank 1, or without rank 2 where all shrink; the others split.
void meetDifferently(Comm& comm, int other, bool all_shrink) {
  comm.barrier();
  ncclComm_t child = nullptr;
  int excluded = comm.rank() == other && all_shrink ? 2 : 1;
  if (comm.rank() == other || all_shrink) {
    check(ncclCommShrink(comm.handle(), &excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
  } else {
    check(ncclCommSplit(comm.handle(), 0, 0, &child, nullptr));
  }
  Comm taken(child);
}

/// Rank 0 shrinks, and is killed while it waits. The last rank shrinks when it knows of that.
void shrinkTooLate(Comm& comm) {
  comm.barrier();
  const int last = comm.size() - 1;
  if (comm.rank() != 0 && comm.rank() != last) return;
  ncclResult_t state = ncclSuccess;
  while (comm.rank() == last && state == ncclSuccess) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check(ncclCommGetAsyncError(comm.handle(), &state));
  }
  int excluded = 1;
  ncclComm_t child = nullptr;
  check(ncclCommShrink(comm.handle(), &excluded, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
  Comm taken(child);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const int argument = argc > 2 ? std::atoi(argv[2]) : 0;
  try {
    Comm comm = Comm::fromEnvironment();
    if (what == "split") {
      split(comm);
    } else if (what == "shrink") {
      shrinkAfterDeath(comm, argument);
    } else if (what == "die") {
      dieInsteadOfSplitting(comm, argument);
    } else if (what == "differ") {
      differFromSplitting(comm, argument);
    } else if (what == "absent") {
      stayAway(comm, argument);
    } else if (what == "shrink-or-split" || what == "lists") {
      if (what == "lists" && comm.rank() == 1) stayAway(comm, 1);
      meetDifferently(comm, argument, what == "lists");
    } else if (what == "late") {
      shrinkTooLate(comm);
    } else {
      throw std::runtime_error("what?");
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
