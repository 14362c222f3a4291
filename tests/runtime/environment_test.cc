// Variables that change what the API does: read once per process, so this one sets them first.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tests/harness/ranks.h"

namespace tutti {
namespace {

TEST(Environment, TheVersionIsWhatItSays) {
  int version = 0;
  check(ncclGetVersion(&version));
  EXPECT_EQ(version, 22705);
}

TEST(Environment, CommunicatorsAreNonBlockingWhateverTheyAreGiven) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t comms[2] = {nullptr, nullptr};
  EXPECT_EQ(ncclCommInitRankConfig(&comms[0], 1, test::newId(), 0, &config), ncclInProgress);
  EXPECT_EQ(ncclCommInitRank(&comms[1], 1, test::newId(), 0), ncclInProgress);
  for (const ncclComm_t comm : comms) {
    ncclResult_t state = ncclInProgress;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (state == ncclInProgress && std::chrono::steady_clock::now() < end) {
      check(ncclCommGetAsyncError(comm, &state));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(state, ncclSuccess);
    check(ncclCommDestroy(comm));
  }
}

/// Ends this process: 0 when an operation on memory that is not there is refused, as it says.
[[noreturn]] void useNoMemory(const char* variable, const char* value) {
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  ::setenv(variable, value, 1);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, 1, test::newId(), 0));
  void* const nowhere = reinterpret_cast<void*>(8);
  // In place, and alone: without the check nothing looks at the memory.
  const ncclResult_t result = ncclAllReduce(nowhere, nowhere, 4, ncclFloat, ncclSum, comm, nullptr);
  std::fprintf(stderr, "%s\n", ncclGetLastError(nullptr));
  std::exit(result == ncclInvalidArgument ? 0 : 1);
}

// Settings are read once: these begin anew.
class InAnotherProcess : public testing::Test {
 protected:
  InAnotherProcess() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(InAnotherProcess, PointersAreChecked) {
  for (const auto& [variable, value] :
       {std::pair("NCCL_CHECK_POINTERS", "1"), std::pair("NCCL_CHECK_MODE", "DEBUG_LOCAL"),
        std::pair("NCCL_CHECK_MODE", "DEBUG_GLOBAL")}) {
    EXPECT_EXIT(useNoMemory(variable, value), testing::ExitedWithCode(0), "there is no memory at 0x8");
  }
  EXPECT_EXIT(useNoMemory("NCCL_CHECK_MODE", "DEFAULT"), testing::ExitedWithCode(1), "");
}

[[noreturn]] void joinBlocking() {
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  std::exit(ncclCommInitRankConfig(&comm, 1, test::newId(), 0, &config));
}

TEST_F(InAnotherProcess, CommunicatorsAreBlockingWhateverTheyAreGiven) {
  EXPECT_EXIT(joinBlocking(), testing::ExitedWithCode(ncclSuccess), "");
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  ::setenv("TUTTI_NCCL_VERSION", "2.27.5", 1);
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
