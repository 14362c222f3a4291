// ncclCommRegister, ncclCommDeregister and ncclMemFree: what is refused, in words, and that nothing is left
// behind.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/harness/ranks.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

constexpr std::size_t kBytes = 1 << 20;

class Registrations : public testing::Test {
 protected:
  Registrations() {
    check(ncclCommInitRank(&comm_, 1, test::newId(), 0));
    check(ncclMemAlloc(&memory_, kBytes));
  }
  ~Registrations() override {
    ncclCommDestroy(comm_);
    EXPECT_EQ(ncclMemFree(memory_), ncclSuccess);  // whatever was registered no longer is
  }
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(memory_) + offset; }
  static void expectSays(const std::string& words) {
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find(words), std::string::npos)
        << ncclGetLastError(nullptr);
  }

  ncclComm_t comm_ = nullptr;
  void* memory_ = nullptr;
  void* handle_ = nullptr;
};

TEST_F(Registrations, TwiceIsRefused) {
  ASSERT_EQ(ncclCommRegister(comm_, memory_, kBytes, &handle_), ncclSuccess);
  void* second = &second;
  EXPECT_EQ(ncclCommRegister(comm_, memory_, kBytes, &second), ncclInvalidUsage);
  EXPECT_EQ(second, nullptr);
  expectSays("are registered with this communicator already");
  EXPECT_EQ(ncclCommRegister(comm_, at(kBytes - 1), 1, &second), ncclInvalidUsage);
  EXPECT_EQ(ncclCommDeregister(comm_, handle_), ncclSuccess);
  EXPECT_EQ(ncclCommRegister(comm_, memory_, kBytes, &handle_), ncclSuccess);
}

TEST_F(Registrations, PartsBesideEachOtherAreFine) {
  void* second = nullptr;
  EXPECT_EQ(ncclCommRegister(comm_, memory_, kBytes / 2, &handle_), ncclSuccess);
  EXPECT_EQ(ncclCommRegister(comm_, at(kBytes / 2), kBytes / 2, &second), ncclSuccess);
}

TEST_F(Registrations, FreeingWhatIsRegisteredIsRefused) {
  ASSERT_EQ(ncclCommRegister(comm_, at(100), 200, &handle_), ncclSuccess);
  EXPECT_EQ(ncclMemFree(memory_), ncclInvalidUsage);
  expectSays("still registered 1 time(s). Call ncclCommDeregister first");
}

TEST_F(Registrations, BadArgumentsAreNamed) {
  EXPECT_EQ(ncclCommRegister(comm_, nullptr, kBytes, &handle_), ncclInvalidArgument);
  expectSays("buff is NULL");
  EXPECT_EQ(ncclCommRegister(comm_, memory_, 0, &handle_), ncclInvalidArgument);
  expectSays("size is 0");
  EXPECT_EQ(ncclCommRegister(comm_, memory_, kBytes, nullptr), ncclInvalidArgument);
  expectSays("handle is NULL");
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - 1000}) {
    EXPECT_EQ(ncclCommRegister(comm_, memory_, bytes, &handle_), ncclInvalidArgument);
    expectSays("go beyond the end of the address space. Is the size in bytes?");
  }
  int nothing = 0;
  EXPECT_EQ(ncclCommDeregister(comm_, &nothing), ncclInvalidUsage);
  expectSays("none of this communicator's");
  ASSERT_EQ(ncclCommRegister(comm_, memory_, kBytes, &handle_), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comm_, handle_), ncclSuccess);
  EXPECT_EQ(ncclCommDeregister(comm_, handle_), ncclInvalidUsage);
}

TEST_F(Registrations, OtherMemoryIsAcceptedAndMoreThanThereIsRoomFor) {
  std::vector<std::byte> heap(1000);
  EXPECT_EQ(ncclCommRegister(comm_, heap.data(), heap.size(), &handle_), ncclSuccess);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(ncclCommRegister(comm_, at(i * 64), 64, &handle_), ncclSuccess) << i;
  }
}

}  // namespace
}  // namespace tutti
