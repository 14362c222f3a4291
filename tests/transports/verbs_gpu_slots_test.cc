// Slots in GPU memory: how devices get at it, and when what they wrote there may be used.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/transports/fake_gpu.h"
#include "transports/link_memory.h"
#include "transports/verbs/receiving_end.h"
#include "transports/verbs/sending_end.h"

namespace tutti {
namespace {

class GpuSlotsTest : public testing::Test {
 protected:
  /// What way is found, or why there is none.
  std::string place() {
    try {
      return GpuSlots(block_, ports_, settings_).way();
    } catch (const Error& error) {
      return error.what();
    }
  }

  static std::shared_ptr<test::FakeBlock> makeBlock() {
    return std::make_shared<test::FakeBlock>(65536, test::FakeBlock::Hosts::may_not_touch);
  }

  test::Fabric& fabric_ = test::Fabric::fresh();
  std::vector<VerbsPort> ports_ = {fabric_.makePort("fake", "10.0.0.1")};
  test::FakeDevice& fake_ = fabric_["fake"];
  RdmaSettings settings_;
  std::shared_ptr<test::FakeBlock> block_ = makeBlock();
};

TEST_F(GpuSlotsTest, DmaBufIsTakenFirst) {
  fake_.dma_buf_error = 0;
  EXPECT_EQ(place(), "dma-buf");
  EXPECT_TRUE(fake_.regions.empty()) << "of a GpuSlots that is gone";
}

TEST_F(GpuSlotsTest, ThenThePeerMemoryOfTheGpusDriver) {
  EXPECT_EQ(place(), "nvidia-peermem") << "the device takes no dma-buf";
  fake_.dma_buf_error = 0;
  block_->no_dma_buf = "the driver has none";
  EXPECT_EQ(place(), "nvidia-peermem");
  block_->no_dma_buf = "";
  settings_.dma_buf = false;
  EXPECT_EQ(place(), "nvidia-peermem");
}

TEST_F(GpuSlotsTest, ElseItSaysWhatWasInTheWay) {
  fake_.address_error = EFAULT;
  const std::string why_not = place();
  EXPECT_NE(why_not.find("fake does not reach GPU memory: by dma-buf: ibv_reg_dmabuf_mr: Operation not"),
            std::string::npos)
      << why_not;
  EXPECT_NE(why_not.find("by nvidia-peermem: ibv_reg_mr: Bad address (errno 14)"), std::string::npos)
      << why_not;
  settings_.dma_buf = false;
  EXPECT_NE(place().find("by dma-buf: NCCL_DMABUF_ENABLE=0"), std::string::npos) << place();
}

TEST_F(GpuSlotsTest, MemoryIsFreedAfterItsRegistrationHasEnded) {
  // The block itself looks.
  { const RegisteredBlock alone(ports_[0].device, makeBlock(), true); }
  auto slots = std::make_unique<GpuSlots>(makeBlock(), ports_, settings_);
  const auto kept = slots->memory();
  slots.reset();
  EXPECT_TRUE(fake_.regions.empty());
}

TEST_F(GpuSlotsTest, ARegistrationThatDoesNotWorkIsNotUsed) {
  fake_.read_status = IBV_WC_REM_ACCESS_ERR;
  const std::string why_not = place();
  EXPECT_NE(why_not.find("fake:1: reading back GPU memory: "), std::string::npos) << why_not;
}

/// Two links that share a port: what one read covers.
TEST_F(GpuSlotsTest, WhatArrivesIsVisibleBehindAReadThatBeganAfterIt) {
  GpuSlots slots(block_, ports_, settings_);
  Visibility first;
  Visibility second;
  first.restart(slots.readBack(ports_[0]), 10);
  second.restart(slots.readBack(ports_[0]), 20);
  fake_.holds_reads = true;
  const int before = fake_.reads;
  first.arrive(11);
  EXPECT_EQ(first.visible(), 10U);
  first.arrive(13);
  second.arrive(21);
  EXPECT_EQ(fake_.reads, before + 1) << "one at a time";
  fabric_.returnReads();
  EXPECT_EQ(first.visible(), 11U);
  EXPECT_EQ(second.visible(), 20U) << "the read that is back began before";
  EXPECT_EQ(fake_.reads, before + 2) << "the next is for both";
  fabric_.returnReads();
  EXPECT_EQ(second.visible(), 21U);
  EXPECT_EQ(first.visible(), 13U);
  EXPECT_FALSE(first.isPending() || second.isPending());
  EXPECT_EQ(fake_.reads, before + 2);
}

TEST_F(GpuSlotsTest, AReadThatFailsIsAProblemAndTheNextConnectionGetsAnother) {
  GpuSlots slots(block_, ports_, settings_);
  Visibility link;
  link.restart(slots.readBack(ports_[0]), 0);
  fake_.holds_reads = true;
  link.arrive(1);
  fabric_.returnReads(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(link.visible(), 0U);
  EXPECT_NE(link.problem().find("reading back GPU memory"), std::string::npos);
  fake_.holds_reads = false;
  link.restart(slots.readBack(ports_[0]), 0);
  EXPECT_EQ(link.problem(), "");
  link.arrive(1);
  EXPECT_EQ(link.visible(), 1U);
}

/// One end of a link whose slots lie in "GPU" memory.
class GpuLinkTest : public GpuSlotsTest {
 protected:
  static constexpr std::uint32_t kSlots = 4;
  static constexpr std::uint32_t kSlotBytes = 8192;  // small slots could travel as one write

  VerbsContext context() {
    return {.settings = settings_,
            .ports = ports_,
            .first_port = [](int, std::uint32_t, bool) { return 0; },
            .user_memory = users_,
            .connecting = connecting_,
            .gpu_slots = &slots_,
            .rank = 0,
            .checksums = false,
            .recovery = std::chrono::milliseconds(5000),
            .faults = nullptr,
            .altered = altered_,
            .is_retired = [](int) { return false; },
            .tell = [this](int, const Letter& letter) { letters_.push_back(letter); },
            .fail = [](const std::string& text) { ADD_FAILURE() << text; },
            .note = {},
            .tell_path = {}};
  }

  QueuePairAddress address() const {
    QueuePairAddress address{};
    address.numbers[0] = 7;
    address.mtu = test::FakeDevice::kMtu;
    address.partition = 0xffff;
    address.gid = ports_[0].gids[0];
    return address;
  }

  /// Until it is connected, which another thread does.
  template <class End>
  void connect(End& end) {
    const auto deadline = VerbsClock::now() + std::chrono::seconds(60);
    while (end.isTransient()) {
      ASSERT_LT(VerbsClock::now(), deadline);
      end.tend(VerbsClock::now());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    fake_.holds_reads = true;
  }

  static std::uint64_t count(const Counter* counter) { return counter->value.load(); }

  GpuSlots slots_{block_, ports_, settings_};
  LinkMemory memory_{1, kSlots, kSlotBytes, slots_.memory()};
  LinkView view_ = memory_.link(0);
  UserMemory users_;
  ConnectingThreads connecting_{{}};
  std::atomic<std::uint64_t> altered_{0};
  std::vector<Letter> letters_;
  VerbsContext context_ = context();
};

TEST_F(GpuLinkTest, OnlyTheSlotsLieThere) {
  const auto gpu = block_->bytes();
  EXPECT_EQ(view_.data, gpu.data());
  EXPECT_FALSE(std::as_bytes(gpu).data() <= reinterpret_cast<std::byte*>(view_.headers) &&
               reinterpret_cast<std::byte*>(view_.headers) < gpu.data() + gpu.size());
}

TEST_F(GpuLinkTest, AReceiverPublishesNothingThatTheGpuMightNotSee) {
  ReceivingEnd end(context_, view_, memory_.bytesOf(0), {.rank = 1, .lane = 0, .name = "rank 1"});
  HelloLetter hello{.head = {LetterKind::hello, 0, 1, 1}};
  hello.slot_count = kSlots;
  hello.slot_bytes = kSlotBytes;
  hello.queue_pairs = hello.gid_count = hello.is_ethernet = 1;
  hello.gids[0] = ports_[0].gids[0];
  hello.address = address();
  hello.slots_at = hello.headers_at = 4096;
  end.hear(hello);
  connect(end);
  ASSERT_EQ(letters_.size(), 1U);
  const auto answer = readLetter<AnswerLetter>(letters_[0]);
  ASSERT_TRUE(answer && answer->is_refused == 0) << textOf(answer->text);
  EXPECT_EQ(answer->slots_key, slots_.keys(*ports_[0].device).remote);
  EXPECT_NE(answer->headers_key, answer->slots_key);

  view_.header(0) = toWireHeader({.sequence = 0, .bytes = 8}, {}, {}, false);
  fabric_.receive(0);
  end.receive();
  EXPECT_EQ(count(view_.posted), 0U) << "nothing was read back";
  EXPECT_TRUE(end.isPending());
  fabric_.returnReads();
  end.receive();
  EXPECT_EQ(count(view_.posted), 1U);
}

TEST_F(GpuLinkTest, ASenderTakesNoResultThatTheGpuMightNotSee) {
  SendingEnd end(context_, view_, memory_.bytesOf(0), {.rank = 1, .lane = 0, .name = "rank 1"});
  view_.header(0) = {.sequence = 0, .bytes = 8};
  view_.header(1) = {.sequence = 1, .returns = 1, .bytes = 8};
  view_.posted->value.store(2);
  end.push();
  ASSERT_EQ(letters_.size(), 1U);
  const auto hello = readLetter<HelloLetter>(letters_[0]);
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->slots_key, slots_.keys(*ports_[0].device).remote);
  AnswerLetter answer{.head = {LetterKind::answer, 0, hello->head.epoch, 0}};
  answer.senders_gid = ports_[0].gids[0];
  answer.address = address();
  answer.slots_at = answer.headers_at = 4096;
  end.hear(answer);
  connect(end);
  ASSERT_FALSE(end.hasUnsent());
  EXPECT_EQ(fake_.writes, 4) << "header and data of two slots, apart";

  const int before = fake_.reads;
  fabric_.receive(1);
  end.receive();
  EXPECT_EQ(count(view_.released), 1U) << "a credit without a result";
  EXPECT_EQ(fake_.reads, before);
  fabric_.receive(2);
  end.receive();
  EXPECT_EQ(count(view_.released), 1U) << "nothing was read back";
  fabric_.returnReads();
  end.receive();
  EXPECT_EQ(count(view_.released), 2U);
}

}  // namespace
}  // namespace tutti
