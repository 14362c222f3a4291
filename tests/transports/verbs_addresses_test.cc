// Ports whose addresses change while links use them: connections go on while they can, and the next ones are
// made by what the port has then.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "tests/transports/verbs_harness.h"

namespace tutti {
namespace {

using test::Fabric;
using test::milliseconds;

/// Rank 0's first port is "r0p0", 10.0.0.1 or LID 17.
class VerbsAddresses : public testing::Test {
 protected:
  void talkThrough(const std::function<void()>& change, int ports = 1, bool is_ethernet = true) {
    RdmaOptions options;
    options.slot_count = 4;
    options.slot_bytes = 512;
    test::VerbsCluster cluster(options, 2, ports, is_ethernet);
    Fabric::the().breakAt(30, change);
    EXPECT_EQ(test::converse(cluster, {.seed = 3, .messages = 40, .max_bytes = 512}), test::none());
    EXPECT_EQ(Fabric::the().violations(), test::none());
    notes_ = cluster.notes();
  }
  void expectNoted(const std::string& part) const {
    EXPECT_NE(notes_.find(part), std::string::npos) << part << "\n" << notes_;
  }

  std::string notes_;
};

constexpr const char* kGone =
    "RDMA r0p0:1: the port's addresses changed (IBV_EVENT_GID_CHANGE). Did its interface lose, or change, "
    "its "
    "IP address? GID 10.0.0.1 (RoCE v2, index 1) is gone";

TEST_F(VerbsAddresses, AnotherAddressServesTheNextConnection) {
  talkThrough([] {
    Fabric::the().removeAddresses("r0p0");
    Fabric::the().addAddress("r0p0", 5, "10.0.0.99");
  });
  expectNoted(kGone);
  expectNoted("GID 10.0.0.99 (RoCE v2, index 5) is new");
  expectNoted("no acknowledgement for 2000 ms");
  expectNoted("goes on from r0p0:1 10.0.0.99 (RoCE v2, index 5)");
}

TEST_F(VerbsAddresses, OfAPortThatHasNoneAnotherTakesOver) {
  talkThrough([] { Fabric::the().removeAddresses("r0p0"); }, 2);
  expectNoted(kGone);
  expectNoted("goes on from r0p1:1 10.0.1.1");
}

TEST_F(VerbsAddresses, AnAddressThatComesBackIsWaitedFor) {
  std::jthread later;
  talkThrough([&later] {
    Fabric::the().removeAddresses("r0p0");
    Fabric::the().failPairs("r0p0", IBV_WC_RETRY_EXC_ERR);
    later = std::jthread([] {
      std::this_thread::sleep_for(milliseconds(200));
      Fabric::the().addAddress("r0p0", 1, "10.0.0.1");
    });
  });
  expectNoted(kGone);
  expectNoted("GID 10.0.0.1 (RoCE v2, index 1) is new");
}

TEST_F(VerbsAddresses, AnAddressThatIsAddedDisturbsNobody) {
  talkThrough([] { Fabric::the().addAddress("r0p0", 2, "10.0.0.77"); });
  expectNoted("GID 10.0.0.77 (RoCE v2, index 2) is new");
  EXPECT_EQ(notes_.find("broke"), std::string::npos) << notes_;
}

TEST_F(VerbsAddresses, AnotherLidServesTheNextConnection) {
  talkThrough([] { Fabric::the().setLid("r0p0", 21); }, 1, /*is_ethernet=*/false);
  expectNoted(
      "RDMA r0p0:1: the port has another LID (IBV_EVENT_LID_CHANGE). Did the subnet manager start "
      "again? LID 21 instead of 17");
}

TEST_F(VerbsAddresses, WhatChangesNothingForLinksIsNotTold) {
  talkThrough([] { Fabric::the().fail("r0p0", IBV_EVENT_GID_CHANGE); });
  EXPECT_EQ(notes_, "");
}

}  // namespace
}  // namespace tutti
