// What RDMA does with memory: registered and other buffers of users, and data that is altered on its way.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/softroce/rdma_ranks.h"

namespace tutti {
namespace {

using test::Command;
using test::CommandResult;
using test::Environment;
using test::expectSuccess;
using test::RankGroup;

RankGroup ranks(const std::vector<std::string>& arguments, const Environment& more = {}) {
  return test::rdmaRanks(2, arguments, more, 1, "memory_program");
}

bool says(const CommandResult& result, const std::string& words) {
  return result.err.find(words) != std::string::npos;
}

/// What the ranks counted as altered, together.
int alteredOf(const std::vector<CommandResult>& results) {
  int altered = 0;
  for (const CommandResult& result : results) {
    const std::size_t at = result.out.find("altered ");
    if (at == std::string::npos) {
      ADD_FAILURE() << "a rank says nothing of altered slots: " << result.out;
    } else {
      altered += std::stoi(result.out.substr(at + 8));
    }
  }
  return altered;
}

TEST(RdmaMemory, SizesAreSweptInRegisteredAndOtherMemory) {
  for (const char* plan : {"ring", "direct"}) {
    auto group = ranks({"sweep"}, {{"TUTTI_PLAN", plan}, {"NCCL_DEBUG", "INFO"}});
    const auto results = group.wait();
    expectSuccess(results);
    EXPECT_EQ(alteredOf(results), 0);
    for (const CommandResult& result : results)
      EXPECT_TRUE(says(result, "works on them in place")) << plan << result.err;
  }
}

TEST(RdmaMemory, ALargeMessageArrives) {
  auto group = ranks({"much", "64"});
  expectSuccess(group.wait());
}

TEST(RdmaMemory, MemoryThatWasMappedAgainIsTheNewOne) {
  auto group = ranks({"again"}, {{"NCCL_DEBUG", "INFO"}});
  const auto results = group.wait();
  expectSuccess(results);
  for (const CommandResult& result : results) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = result.err.find("works on them in place", at)) != std::string::npos; ++at)
      ++count;
    EXPECT_GE(count, 4U) << "not registered with the device each time\n" << result.err;
  }
}

TEST(RdmaMemory, ChildrenOfARankHurtNobody) {
  auto group = ranks({"fork"});
  expectSuccess(group.wait());
}

/// Slots, and with "direct" results too: in registered memory, which gets them straight, and in other.
TEST(RdmaMemory, WhatIsAlteredOnItsWayIsSentAgain) {
  for (const char* plan : {"ring", "direct"}) {
    auto group = ranks({"sweep"}, {{"TUTTI_PLAN", plan},
                                   {"TUTTI_CHECKSUM", "1"},
                                   {"TUTTI_FAULTS", "corrupt:every=700000;seed=3"},
                                   {"NCCL_DEBUG", "WARN"}});
    const auto results = group.wait();
    expectSuccess(results);
    EXPECT_GT(alteredOf(results), 5) << plan;
    const bool has_results = says(results[0], "the result of slot") || says(results[1], "the result of slot");
    EXPECT_EQ(has_results, plan == std::string("direct")) << results[0].err << results[1].err;
  }
}

TEST(RdmaMemory, WithoutChecksumsItWouldArrive) {
  auto group = ranks({"conform", "31"}, {{"TUTTI_FAULTS", "corrupt:at=5000"}, {"TUTTI_SLOT_BYTES", "16384"}});
  int wrong = 0;
  for (const CommandResult& result : group.wait()) wrong += result.exit_code == 0 ? 0 : 1;
  EXPECT_GT(wrong, 0);
}

TEST(RdmaMemory, WhatIsAlteredEachTimeIsAnError) {
  auto group = ranks({"conform", "31"}, {{"TUTTI_CHECKSUM", "1"}, {"TUTTI_FAULTS", "corrupt:every=1"}});
  // One of them notices first, and the other one reads it: who it was, and whose link, must be said.
  const std::regex words(
      "rank ([01]) \\(pid [0-9]+ on [^)]*\\): slot [0-9]+ of the link with rank ([01]) .*was altered "
      "on its way 8 times");
  for (const CommandResult& result : group.wait()) {
    std::smatch ranks;
    ASSERT_TRUE(std::regex_search(result.err, ranks, words)) << result.err;
    EXPECT_NE(ranks.str(1), ranks.str(2)) << result.err;
  }
}

TEST(RdmaMemory, ABufferThatCannotBeLockedIsCopied) {
  ASSERT_EQ(test::runCommand({"sh", "-c", "chmod 666 /dev/infiniband/uverbs*"}).exit_code, 0);
  const test::IdFile id;
  ASSERT_EQ(test::runCommand({"chmod", "644", id.path()}).exit_code, 0);
  std::vector<std::unique_ptr<Command>> both;
  for (int rank = 0; rank < 2; ++rank) {
    auto environment = test::byRdma(test::rdmaDevicesOf(2).at(rank));
    environment.insert({{"TUTTI_RANK", std::to_string(rank)},
                        {"TUTTI_WORLD_SIZE", "2"},
                        {"TUTTI_ID_FILE", id.path()},
                        {"NCCL_HOSTID", "host" + std::to_string(rank)},
                        {"NCCL_DEBUG", "WARN"}});
    // A user without privileges. The links fit into the limit, the buffer does not.
    both.push_back(std::make_unique<Command>(
        std::vector<std::string>{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                 "--bounding-set=-all", "prlimit", "--memlock=8388608:8388608",
                                 std::string(TUTTI_BIN_DIR) + "/memory_program", "much", "16"},
        environment));
  }
  std::string sender;
  for (auto& rank : both) {
    const CommandResult result = rank->wait(std::chrono::seconds(60));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    sender += result.err;
  }
  EXPECT_NE(sender.find("they are copied through slots"), std::string::npos) << sender;
  EXPECT_NE(sender.find("the limit of locked memory (ulimit -l) is 8192 KiB"), std::string::npos) << sender;
}

}  // namespace
}  // namespace tutti
