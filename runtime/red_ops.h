// The operations that a user made with ncclRedOpCreatePreMulSum.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "nccl.h"
#include "runtime/core/types.h"
#include "runtime/task.h"

namespace tutti {

/// Of one communicator. Used by the thread that issues its operations.
class RedOps {
 public:
  /// A new operation; its number is one that no operation of this process has had yet.
  int create(DataType type, const Scalar& scalar);

  /// Throws Error(ncclInvalidArgument) unless `op` is one that was made here and is not destroyed.
  void destroy(int op);

  /// The scalar of `op` for a call on `type`. Throws Error(ncclInvalidArgument) when it is no operation of
  /// this communicator, or one of another type; `call` is for the message.
  const Scalar& scalarOf(int op, DataType type, std::string_view call) const;

 private:
  struct Operation {
    DataType type;
    Scalar scalar;
  };
  std::map<int, Operation> operations_;
};

}  // namespace tutti
