#include "runtime/red_ops.h"

#include <fmt/format.h>

#include <atomic>

#include "tutti/error.h"

namespace tutti {
namespace {

/// Numbers are the process's, so that an operation of another communicator is known as such.
int nextNumber() {
  static std::atomic<std::uint32_t> made{0};
  constexpr std::uint32_t kNumbers = static_cast<std::uint32_t>(ncclMaxRedOp) - kRedOpCount;
  return kRedOpCount + static_cast<int>(made.fetch_add(1, std::memory_order_relaxed) % kNumbers);
}

}  // namespace

int RedOps::create(DataType type, const Scalar& scalar) {
  for (;;) {
    const int number = nextNumber();
    if (operations_.try_emplace(number, Operation{type, scalar}).second) return number;
  }
}

void RedOps::destroy(int op) {
  if (op >= 0 && op < kRedOpCount) {
    throw Error(ncclInvalidArgument,
                fmt::format("ncclRedOpDestroy: op {} ({}) is built in and cannot be destroyed", op,
                            name(static_cast<RedOp>(op))));
  }
  if (operations_.erase(op) == 0) {
    throw Error(ncclInvalidArgument,
                fmt::format("ncclRedOpDestroy: op {} is no operation of this communicator: it was destroyed "
                            "already, or made for another one",
                            op));
  }
}

const Scalar& RedOps::scalarOf(int op, DataType type, std::string_view call) const {
  const auto found = operations_.find(op);
  if (found == operations_.end()) {
    throw Error(ncclInvalidArgument,
                fmt::format("{}: op {} is not an ncclRedOp_t, nor an operation of this communicator: it was "
                            "destroyed, or made for another one",
                            call, op));
  }
  if (found->second.type != type) {
    throw Error(ncclInvalidArgument, fmt::format("{}: op {} was made for {}, but datatype is {}", call, op,
                                                 name(found->second.type), name(type)));
  }
  return found->second.scalar;
}

}  // namespace tutti
