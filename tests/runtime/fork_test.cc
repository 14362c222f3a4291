// fork() while communicators exist: the child is told that they are not its own, and the parent notices
// nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include "runtime/core/unique_fd.h"
#include "runtime/process.h"
#include "tests/harness/ranks.h"
#include "tests/harness/scratch_directory.h"

// Sanitizers have an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TUTTI_COUNTS_ALLOCATIONS
namespace {
std::atomic<int> uses_of_allocator{0};
}
void* operator new(std::size_t bytes) {
  ++uses_of_allocator;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  ++uses_of_allocator;
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

namespace tutti {
namespace {

/// What a child found, as its exit status: 0 is all well.
int inChild(ncclComm_t comm) {
  const auto isRefused = [](ncclResult_t result) {
    const std::string words = ncclGetLastError(nullptr);
    return result == ncclInvalidUsage && words.find("was forked from the one that made comm") != words.npos;
  };
  int count = 0;
  float value = 1;
  if (!isRefused(ncclCommCount(comm, &count))) return 1;
  if (!isRefused(ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm, nullptr))) return 2;
  ncclResult_t state = ncclSuccess;
  if (!isRefused(ncclCommGetAsyncError(comm, &state))) return 3;
  if (!isRefused(ncclCommDestroy(comm))) return 4;
  if (!isRefused(ncclCommAbort(comm))) return 5;
  return 0;
}

int statusOf(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// A thread reads a description of the host that does not end before the child has looked at the host itself.
// The first test: nobody in this process has looked before.
TEST(Fork, TheChildLooksAtItsHostWhileAThreadOfTheParentDoes) {
  const test::ScratchDirectory folder;
  const std::string pipe = folder.path() + "/topology.xml";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Process& process = Process::instance();
  std::thread looks([&] {
    TopologyFiles files;
    files.file = pipe;
    EXPECT_THROW(process.topology().get(files, false, process.log()), Error) << "an empty file";
  });
  UniqueFd writer;
  while (!writer) {  // it can be opened once the thread reads
    writer = UniqueFd(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    std::this_thread::yield();
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    Process& own = Process::instance();
    ::_exit(own.topology().get({}, false, own.log()).nodes.empty() ? 1 : 0);
  }
  EXPECT_EQ(statusOf(child), 0);
  writer = UniqueFd();
  looks.join();
}

#if defined(TUTTI_COUNTS_ALLOCATIONS)
// Most children execute another program at once. Where the parent has threads, they may have been in an
// allocator that does not see to forks, which would be locked in the child for ever.
TEST(Fork, TheChildAllocatesNothingBeforeItUsesTheLibrary) {
  Comm comm(1, test::newId(), 0);
  const int before = uses_of_allocator.load();
  const pid_t child = ::fork();
  if (child == 0) {
    const int after_fork = uses_of_allocator.load();
    static_cast<void>(Process::instance());
    const bool is_renewed = uses_of_allocator.load() > after_fork;
    ::_exit(after_fork != before ? 1 : is_renewed ? 0 : 2);
  }
  EXPECT_EQ(statusOf(child), 0) << "1: the allocator was used in fork(); 2: never";
}
#endif

TEST(Fork, TheChildIsRefusedAndTheParentGoesOn) {
  ncclComm_t comms[2];
  check(ncclCommInitAll(comms, 2, nullptr));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0) << "fork";
  if (child == 0) std::exit(inChild(comms[0]));  // exit() runs what the library registered for it
  EXPECT_EQ(statusOf(child), 0);
  float values[2] = {1, 2};
  check(ncclGroupStart());
  for (int r = 0; r < 2; ++r)
    check(ncclAllReduce(&values[r], &values[r], 1, ncclFloat, ncclSum, comms[r], nullptr));
  check(ncclGroupEnd());
  EXPECT_EQ(values[0], 3);
  for (const ncclComm_t comm : comms) {
    ncclResult_t state = ncclInternalError;
    check(ncclCommGetAsyncError(comm, &state));
    EXPECT_EQ(state, ncclSuccess);
    check(ncclCommDestroy(comm));
  }
}

#if !defined(__SANITIZE_THREAD__)  // which forbids threads in a child of a process that has some
TEST(Fork, TheChildMakesCommunicatorsOfItsOwn) {
  Comm before(1, test::newId(), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0) << "fork";
  if (child == 0) {
    const auto errors = test::runRanks(2, [](Comm& comm) { comm.barrier(); });
    std::exit(errors == test::noErrors(2) ? 0 : 1);
  }
  EXPECT_EQ(statusOf(child), 0);
}
#endif

}  // namespace
}  // namespace tutti
