// One rank of a run: where it works, its buffers, the operation at hand.
#pragma once

#include <cstddef>
#include <optional>

#include "bench/buffers.h"
#include "bench/call_operation.h"
#include "bench/case.h"
#include "bench/collective.h"
#include "bench/options.h"
#include "tools/device/seat.h"

namespace tutti::perf {

/// The arguments of one call.
struct Invocation {
  const void* send;
  void* recv;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  ncclComm_t comm;
  cudaStream_t stream;
  const Layout& layout;  ///< of this rank's buffers
};
using Call = ncclResult_t (*)(const Invocation&);

struct Operands {
  std::byte* send;
  std::byte* recv;
};

class Rank {
 public:
  /// Allocates buffers for the largest size. All arguments outlive the object.
  Rank(const Options& options, const Collective& collective, Call call, const device::Seat& seat, int nranks);

  const device::Seat& seat() const { return seat_; }
  int number() const { return rank_; }
  const Layout& layout() const { return layout_; }

  /// What invoke() is about from now on.
  void begin(const Case& item);

  /// Addresses of the device, `shift_bytes` into the buffers.
  Operands operands(bool in_place, std::size_t shift_bytes) const;

  /// Queues the operation; throws Error when the call fails.
  void invoke(const Operands& operands) const;

 private:
  const Collective& collective_;
  const Call call_;
  const device::Seat& seat_;
  const int rank_;
  const int nranks_;
  RankBuffers buffers_;
  const Case* case_ = nullptr;
  Layout layout_;
  std::optional<CallOperation> operation_;
};

}  // namespace tutti::perf
