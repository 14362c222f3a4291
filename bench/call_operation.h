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
    std::array<std::byte, sizeof(double)> scalar{};
    writeScalar(type, rank, scalar.data());
    check(ncclRedOpCreatePreMulSum(&op_, scalar.data(), type, ncclScalarHostImmediate, comm));
    made_ = true;
  }
  CallOperation(const CallOperation&) = delete;
  CallOperation& operator=(const CallOperation&) = delete;
  ~CallOperation() {
    if (made_) ncclRedOpDestroy(op_, comm_);
  }

  ncclRedOp_t get() const { return op_; }

 private:
  ncclRedOp_t op_;
  ncclComm_t comm_;
  bool made_ = false;
};

}  // namespace tutti::perf
