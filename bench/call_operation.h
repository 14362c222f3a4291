// The reduction operation that the calls get.
#pragma once

#include <array>

#include "bench/verify.h"
#include "tutti/tutti.h"

namespace tutti::perf {

/// A built-in operation as it is; for mulsum one made by ncclRedOpCreatePreMulSum with this rank's scalar,
/// destroyed with the object. Bound to the communicator and the type.
class CallOperation {
 public:
  CallOperation(ncclRedOp_t op, ncclDataType_t type, ncclComm_t comm, int rank) : op_(op), comm_(comm) {
    if (op != kMulSum) return;
#if TUTTI_HAS_PREMULSUM
    std::array<std::byte, sizeof(double)> scalar{};
    writeScalar(type, rank, scalar.data());
    check(ncclRedOpCreatePreMulSum(&op_, scalar.data(), type, ncclScalarHostImmediate, comm));
    made_ = true;
#else
    (void)type, (void)rank;
    throw Error(ncclInvalidArgument, "this version has no ncclRedOpCreatePreMulSum");
#endif
  }
  CallOperation(const CallOperation&) = delete;
  CallOperation& operator=(const CallOperation&) = delete;
  ~CallOperation() {  // NOLINT(modernize-use-equals-default): it is not, where there is mulsum
#if TUTTI_HAS_PREMULSUM
    if (made_) ncclRedOpDestroy(op_, comm_);
#endif
  }

  ncclRedOp_t get() const { return op_; }

 private:
  ncclRedOp_t op_;
  [[maybe_unused]] ncclComm_t comm_;
  [[maybe_unused]] bool made_ = false;
};

}  // namespace tutti::perf
