// NCCL_CHECK_POINTERS on host memory: buffers that are not all there are refused, before anything is touched.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <string>
#include <vector>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/communicator.h"
#include "runtime/mapped_memory.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Three pages: one to read and write, one to read, one that nobody may touch.
class PointerChecks : public testing::Test {
 protected:
  PointerChecks() {
    void* const memory =
        ::mmap(nullptr, 3 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<std::byte*>(memory);
    ::mprotect(start_ + page_, page_, PROT_READ);
    ::mprotect(start_ + 2 * page_, page_, PROT_NONE);
  }
  ~PointerChecks() override { ::munmap(start_, 3 * page_); }

  static void expectSays(const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::byte* start_ = nullptr;
};

TEST_F(PointerChecks, MappingsAnswer) {
  EXPECT_EQ(whyNotAccessible(start_, page_, true), "");
  EXPECT_EQ(whyNotAccessible(start_, 2 * page_, false), "");
  EXPECT_EQ(whyNotAccessible(start_ + 2 * page_ - 1, 1, false), "");
  expectSays(whyNotAccessible(start_, page_ + 1, true), "must not be written");
  expectSays(whyNotAccessible(start_, 2 * page_ + 1, false), "must not be read");
  expectSays(whyNotAccessible(reinterpret_cast<void*>(8), 1, false), "there is no memory at 0x8");
  expectSays(whyNotAccessible(start_, ~std::uint64_t{0}, false), "beyond");
}

TEST_F(PointerChecks, OperationsAreRefused) {
  Settings settings = Process::instance().settings();
  settings.checks_pointers = true;
  const UniqueId id = decode(openRendezvous({.init_timeout = std::chrono::seconds(60)}));
  Communicator comm(Process::instance(), settings, {.nranks = 1, .rank = 0, .id = id, .check = {}});
  const auto refusal = [&](const void* send, void* recv, std::uint64_t count) -> std::string {
    Task task{.descriptor = {.type = DataType::uint8, .count = count}, .send = send, .recv = recv};
    try {
      comm.validate(task);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ncclInvalidArgument);
      return error.what();
    }
  };
  EXPECT_EQ(refusal(start_, start_, page_), "");
  EXPECT_EQ(refusal(start_ + page_, start_, page_), "");
  expectSays(refusal(start_, start_ + page_, page_), "rank 0: AllReduce recvbuff: ");
  std::vector<std::byte> elsewhere(2 * page_);
  expectSays(refusal(start_ + page_, elsewhere.data(), page_ + 1), "rank 0: AllReduce sendbuff: ");
  expectSays(refusal(reinterpret_cast<void*>(8), start_, 1),
             "sendbuff: 1 bytes at 0x8: there is no memory at 0x8");
}

}  // namespace
}  // namespace tutti
