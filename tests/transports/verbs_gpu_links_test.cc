// RDMA links with slots in GPU memory whose ports go down. What devices write there arrives as late as it
// may, and the test reads it as a GPU would: what was published too early is wrong data.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "tests/transports/fake_gpu.h"
#include "tests/transports/verbs_harness.h"

namespace tutti {
namespace {

using test::Fabric;
using test::milliseconds;

constexpr test::Talk kTalk{.seed = 5, .messages = 30, .max_bytes = 512, .lends = false};

/// Talks while `action` befalls the links after so many writes. Returns what was wrong.
std::string talkThrough(std::uint64_t writes, const std::function<void()>& action, int ports) {
  test::FakeGpus gpus;
  RdmaOptions options;
  options.slot_count = 4;
  options.slot_bytes = 512;
  options.gpus = &gpus;
  test::VerbsCluster cluster(options, 2, ports);
  EXPECT_EQ(cluster[0].slotPlace(), "GPU memory, by nvidia-peermem");
  Fabric::the().breakAt(writes, action);
  std::string text;
  for (const std::string& error : test::converse(cluster, kTalk)) text += error + "\n";
  for (const std::string& violation : Fabric::the().violations()) text += violation + "\n";
  return text.empty() ? "" : text + cluster.notes();
}

TEST(VerbsGpuLinks, WhatIsPublishedIsThere) { EXPECT_EQ(talkThrough(~0ULL, {}, 1), ""); }

TEST(VerbsGpuLinks, AnotherPortTakesOverAtAnyMoment) {
  for (const char* const device : {"r0p0", "r1p0"}) {
    for (std::uint64_t at = 1; at < 100; at += at < 24 ? 1 : 5) {
      SCOPED_TRACE(std::string(device) + " goes down at write " + std::to_string(at));
      EXPECT_EQ(talkThrough(
                    at, [device] { Fabric::the().setPort(device, false); }, 2),
                "");
    }
  }
}

TEST(VerbsGpuLinks, ThePortComesBack) {
  for (const std::uint64_t at : {5U, 20U, 37U}) {
    std::jthread later;
    const auto interrupt = [&later] {
      Fabric::the().setPort("r1p0", false);
      later = std::jthread([] {
        std::this_thread::sleep_for(milliseconds(100));
        Fabric::the().setPort("r1p0", true);
      });
    };
    EXPECT_EQ(talkThrough(at, interrupt, 1), "");
  }
}

TEST(VerbsGpuLinks, QueuePairsFailThoseThatReadBackToo) {
  for (std::uint64_t at = 1; at < 60; at += 4) {
    SCOPED_TRACE("write " + std::to_string(at));
    EXPECT_EQ(talkThrough(
                  at, [] { Fabric::the().failPairs("r1p0", IBV_WC_FATAL_ERR); }, 1),
              "");
  }
}

}  // namespace
}  // namespace tutti
