// What the host executor waits for on a link.
#include "kernels/host/host_executor.h"

#include <gtest/gtest.h>

#include <array>
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

}  // namespace
}  // namespace tutti
