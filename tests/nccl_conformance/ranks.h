// Ranks as threads of this process, one communicator of all of them.
#pragma once

#include <gtest/gtest.h>
#include <nccl.h>

#include <barrier>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl_conformance/memory.h"

namespace conformance {

/// Throws, with the library's words, unless the call succeeded.
inline void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(result) + ": " +
                           ncclGetLastError(nullptr));
}
#define CHECK_NCCL(call) ::conformance::check(call, #call)

/// Whether the library is Tutti's: it promises some things that NCCL leaves open.
inline bool isTutti() {
  return std::string(ncclGetErrorString(ncclInternalError)).find("Tutti") != std::string::npos;
}

inline ncclUniqueId newId() {
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  return id;
}

/// One rank, as its thread sees it.
struct Rank {
  int rank;
  int nranks;
  ncclComm_t comm;
  const Stream& stream;
};

/// Runs body(rank) in a thread for each rank; what one throws is a failure of the test.
inline void runThreads(int nranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(nranks));
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        takeDevice(rank);
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The same with a communicator, which is destroyed in the end; aborted, after a failure, so that the others
/// do not wait.
inline void runRanks(int nranks, const std::function<void(const Rank&)>& body) {
  const ncclUniqueId id = newId();
  runThreads(nranks, [&](int rank) {
    ncclComm_t comm = nullptr;
    CHECK_NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    try {
      const Stream stream;
      body({rank, nranks, comm, stream});
    } catch (...) {
      ncclCommAbort(comm);
      throw;
    }
    CHECK_NCCL(ncclCommDestroy(comm));
  });
}

/// Threads that wait for each other; one that ends, also by an exception, is waited for no more. Needed after
/// a communicator is destroyed while others go on: CUDA may wait for all GPUs when memory is freed, so no
/// kernel may be waiting for a thread that does so.
class Attendee {
 public:
  explicit Attendee(std::barrier<>& meeting) : meeting_(meeting) {}
  Attendee(const Attendee&) = delete;
  Attendee& operator=(const Attendee&) = delete;
  ~Attendee() { meeting_.arrive_and_drop(); }
  void meet() { meeting_.arrive_and_wait(); }

 private:
  std::barrier<>& meeting_;
};

/// A group that is closed, at the latest, when an exception leaves it.
class Group {
 public:
  Group() { CHECK_NCCL(ncclGroupStart()); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (is_open_) ncclGroupEnd();
  }
  void end() {
    is_open_ = false;
    CHECK_NCCL(ncclGroupEnd());
  }

 private:
  bool is_open_ = true;
};

/// Tests that are repeated for each number of ranks.
class PerRanks : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > mostRanks()) GTEST_SKIP() << "needs a GPU for each of " << GetParam() << " ranks";
  }
};

}  // namespace conformance
