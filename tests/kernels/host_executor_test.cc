// What the host executor waits for on a link.
#include "kernels/host/host_executor.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/core/fault.h"

namespace tutti {
namespace {

/// A wait that gets so far waits for what never comes.
class Impatient final : public WaitMonitor {
 public:
  explicit Impatient(FaultCell& fault) : fault_(fault) {}
  void inspect(int, std::chrono::nanoseconds) override { fault_.trip(ncclInternalError, "it waits"); }
  void differs(int, const Descriptor&) override {}
  bool isLending(int) override { return true; }

 private:
  FaultCell& fault_;
};

class Nothing final : public Progress {
 public:
  void poll(int) override {}
  void push(int) override {}
  void nap(std::chrono::nanoseconds) override {}
};

/// A network link to rank 1 of two slots, whose credits never come unless the test gives them.
class HostExecutorSends : public testing::Test {
 protected:
  HostExecutorSends() {
    link_.posted = &posted_;
    link_.released = &released_;
    link_.headers = headers_.data();
    link_.data = slots_.data();
    link_.slot_count = kSlots;
    link_.slot_bytes = kSlotBytes;
    link_.peer = 1;
    link_.is_network = true;
    links_[1] = link_;
    accepted_[1].network = true;
  }

  /// One message, as point_to_point.h sends it. False if it would wait.
  bool send(std::uint64_t bytes) {
    const Plan plan{
        .descriptor = {.collective = Collective::broadcast, .type = DataType::uint8, .count = bytes},
        .nranks = 2,
        .slot_elements = kSlotBytes};
    const WaitContext wait{fault_, monitor_, 0, nullptr, &progress_};
    const HostLinks links{.inbound = {},
                          .outbound = links_,
                          .peers = {},
                          .accepted = accepted_,
                          .states = states_,
                          .executor = ++executors_,
                          .scratch = {},
                          .loans = {.least_network_bytes = 64}};
    HostExecutor executor(plan, {input_.data(), nullptr}, links, wait, fault_);
    if (!executor.reserve({1})) return false;
    executor.lend({1}, bytes, Loan(input(0)));
    return executor.drain({1});
  }

  static constexpr std::uint32_t kSlots = 2;
  static constexpr std::uint32_t kSlotBytes = 128;

  Counter posted_;
  Counter released_;
  std::array<SlotHeader, kSlots> headers_{};
  std::array<std::byte, std::size_t{kSlots} * kSlotBytes> slots_{};
  std::array<std::byte, kSlotBytes> input_{};
  LinkView link_;
  std::array<LinkView, 2> links_;
  std::array<MemoryAccess, 2> accepted_{};
  std::array<PeerState, 2> states_{};
  std::uint64_t executors_ = 0;
  FaultCell fault_;
  Impatient monitor_{fault_};
  Nothing progress_;
};

TEST_F(HostExecutorSends, DoesNotWaitForTheCreditOfAnEarlierMessageThatWasCopied) {
  EXPECT_TRUE(send(8));
  EXPECT_TRUE(send(8));
  EXPECT_EQ(posted_.value.load(), 2U);
  EXPECT_FALSE(send(8)) << "both slots are in use";
}

TEST_F(HostExecutorSends, WaitsUntilWhatItLentIsBack) {
  EXPECT_FALSE(send(64));
  EXPECT_TRUE(fault_.tripped());
}

/// Says that the lender has failed, once it is told to.
class Lender final : public WaitMonitor {
 public:
  explicit Lender(FaultCell& fault) : fault_(fault) {}
  void inspect(int, std::chrono::nanoseconds) override { fault_.trip(ncclInternalError, "it waits"); }
  void differs(int, const Descriptor&) override {}
  bool isLending(int) override { return !has_failed || !fault_.trip(ncclRemoteError, "it failed"); }

  bool has_failed = false;

 private:
  FaultCell& fault_;
};

/// Two ranks of one process: rank 0 sends by reference, rank 1 receives.
class HostExecutorLends : public testing::Test {
 protected:
  HostExecutorLends() {
    link_ = {.posted = &posted_,
             .released = &released_,
             .headers = headers_.data(),
             .data = slots_.data(),
             .slot_count = 2,
             .slot_bytes = kBytes};
    to_[1] = from_[0] = link_;
    to_[1].peer = 1;
    from_[0].peer = 0;
    accepted_[1].direct = true;
    input_.fill(std::byte{7});
    memory_[0] = PeerMemory(PeerInfo{}, regions_, true, cache_);
  }

  HostLinks sendersLinks() {
    return {.inbound = {},
            .outbound = to_,
            .peers = others_,
            .accepted = accepted_,
            .states = senders_states_,
            .executor = 1,
            .scratch = {},
            .loans = {.least_bytes = 1}};
  }
  HostLinks receiversLinks() {
    return {.inbound = from_,
            .outbound = {},
            .peers = memory_,
            .accepted = {},
            .states = receivers_states_,
            .executor = 1,
            .scratch = {},
            .loans = {}};
  }

  static constexpr std::uint32_t kBytes = 128;
  const Plan plan_{
      .descriptor = {.collective = Collective::broadcast, .type = DataType::uint8, .count = kBytes},
      .nranks = 2,
      .slot_elements = kBytes};

  Counter posted_;
  Counter released_;
  std::array<SlotHeader, 2> headers_{};
  std::array<std::byte, std::size_t{2} * kBytes> slots_{};
  std::array<std::byte, kBytes> input_{};
  std::array<std::byte, kBytes> output_{};
  LinkView link_;
  std::array<LinkView, 2> to_;
  std::array<LinkView, 3> from_;
  std::array<MemoryAccess, 2> accepted_{};
  RegionTable regions_{};
  SegmentCache cache_;
  std::array<PeerMemory, 3> memory_;
  std::array<PeerMemory, 2> others_;  ///< as the sender sees them: of another process
  std::array<PeerState, 2> senders_states_{};
  std::array<PeerState, 3> receivers_states_{};
  FaultCell fault_;
  FaultCell senders_fault_;
  Lender lender_{fault_};
  Impatient impatient_{senders_fault_};
  const WaitContext senders_wait_{senders_fault_, impatient_, 0};
  const WaitContext receivers_wait_{fault_, lender_, 0};
  HostExecutor sender_{plan_, {input_.data(), nullptr}, sendersLinks(), senders_wait_, senders_fault_};
  HostExecutor receiver_{plan_, {nullptr, output_.data()}, receiversLinks(), receivers_wait_, fault_};

  void send() {
    ASSERT_TRUE(sender_.reserve({1}));
    sender_.lend({1}, kBytes, Loan(input(0)));
    ASSERT_EQ(headers_[0].kind, SlotKind::address);
  }
};

TEST_F(HostExecutorLends, WhatIsLentIsBorrowedUntilItIsReleased) {
  send();
  ASSERT_TRUE(receiver_.await({0}));
  EXPECT_EQ(released_.borrowed.load(), 1U);
  receiver_.release({0});
  EXPECT_EQ(released_.borrowed.load(), 0U);
  EXPECT_EQ(released_.value.load(), 1U);
  EXPECT_TRUE(sender_.drain({1}));
}

TEST_F(HostExecutorLends, NothingIsBorrowedOfWhoHasFailed) {
  send();
  lender_.has_failed = true;
  EXPECT_FALSE(receiver_.await({0}));
  EXPECT_STREQ(fault_.message().c_str(), "it failed");
  receiver_.giveBackAll();
  EXPECT_EQ(released_.borrowed.load(), 0U);
}

TEST_F(HostExecutorLends, WhatWasBorrowedOfWhoFailedMeanwhileIsNotUsed) {
  send();
  ASSERT_TRUE(receiver_.await({0}));
  lender_.has_failed = true;
  receiver_.release({0});
  EXPECT_TRUE(fault_.tripped());
  EXPECT_EQ(released_.value.load(), 0U);
}

TEST_F(HostExecutorLends, NobodyIsGivenItsSlotBackWithWhatWasMadeOfMemoryThatWasNotLentAnyMore) {
  Counter posted{1};
  Counter released;
  SlotHeader header{.descriptor = plan_.descriptor, .bytes = kBytes};
  std::array<std::byte, kBytes> slot{};
  from_[2] = {.posted = &posted,
              .released = &released,
              .headers = &header,
              .data = slot.data(),
              .slot_count = 1,
              .slot_bytes = kBytes,
              .peer = 2};
  send();
  ASSERT_TRUE(receiver_.await({0}));
  ASSERT_TRUE(receiver_.await({2}));
  lender_.has_failed = true;  // rank 0
  receiver_.release({2});
  receiver_.release({0});
  EXPECT_EQ(released.value.load(), 0U);
  EXPECT_EQ(released_.value.load(), 0U);
  EXPECT_TRUE(receiver_.hasFailed());
}

TEST_F(HostExecutorLends, WhoHasFailedWaitsUntilNobodyBorrows) {
  send();
  ASSERT_TRUE(receiver_.await({0}));
  EXPECT_FALSE(sender_.drain({1}));
  std::uint64_t borrowed_then = 1;
  std::chrono::nanoseconds waited{};
  std::jthread sender([&] {
    const auto start = std::chrono::steady_clock::now();
    sender_.awaitOwn();
    borrowed_then = released_.borrowed.load();
    waited = std::chrono::steady_clock::now() - start;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  receiver_.giveBackAll();
  sender.join();
  EXPECT_TRUE(borrowed_then == 0 || waited >= std::chrono::milliseconds(500)) << waited.count() << " ns";
}

TEST_F(HostExecutorLends, WhoHasFailedDoesNotWaitForEver) {
  send();
  ASSERT_TRUE(receiver_.await({0}));
  EXPECT_FALSE(sender_.drain({1}));
  sender_.awaitOwn();  // nobody gives back
  EXPECT_EQ(released_.borrowed.load(), 1U);
}

}  // namespace
}  // namespace tutti
