// Variables that change what the API does: read once per process, so this one sets them first.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

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

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  ::setenv("TUTTI_NCCL_VERSION", "2.27.5", 1);
  ::setenv("NCCL_COMM_BLOCKING", "0", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
