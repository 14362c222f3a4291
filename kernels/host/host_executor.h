// Runs programs on host memory, in the thread that called: no hop to another thread.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/executor.h"
#include "kernels/host/combine.h"
#include "runtime/core/fault.h"
#include "runtime/core/link.h"
#include "runtime/core/plan.h"
#include "runtime/core/wait.h"

namespace tutti {

/// The user's memory. No alignment is required.
struct UserBuffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
};

/// What an executor published to other ranks.
struct PostedTraffic {
  std::uint64_t slots = 0;
  std::uint64_t payload_bytes = 0;  ///< headers apart
};

/// One lane of one operation. Lives for the operation; the links and buffers outlive it. A failed wait leaves
/// its reason in the fault cell.
class HostExecutor {
 public:
  /// `inbound` and `outbound`: the lane's links by number.
  HostExecutor(const Plan& plan, const UserBuffers& buffers, std::span<const LinkView> inbound,
               std::span<const LinkView> outbound, const WaitContext& wait, FaultCell& fault);

  bool await(Inbound in);
  bool reserve(Outbound out);
  bool combine(Operands dsts, Operands srcs, std::uint64_t n, Last last);
  void post(Outbound out, std::uint64_t n);
  void release(Inbound in);

  const PostedTraffic& posted() const { return posted_; }

 private:
  const std::byte* source(const Operand& operand) const;
  std::byte* destination(const Operand& operand) const;
  bool refuseSlot(const LinkView& link, const SlotHeader& header, std::uint64_t sequence);

  const Plan& plan_;
  UserBuffers buffers_;
  std::span<const LinkView> inbound_;
  std::span<const LinkView> outbound_;
  const WaitContext& wait_;
  FaultCell& fault_;
  CombineFn combine_;
  std::size_t element_bytes_;
  PostedTraffic posted_;
};

static_assert(Executor<HostExecutor>);

}  // namespace tutti
