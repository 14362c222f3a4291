// What one rank asked for: the part of an operation that all ranks must agree on.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/core/types.h"

namespace tutti {

/// The arguments of one operation in 16 bytes. Travels in every slot's header and on the status board, so
/// that whoever meets a different one can print both. Operations without a reduction or root hold sum and 0
/// there.
struct Descriptor {
  Collective collective = Collective::all_reduce;
  DataType type = DataType::float32;
  RedOp op = RedOp::sum;
  std::uint8_t kind = 0;  ///< 0 collective, 1 transfer (send and receive)
  std::int32_t root = 0;  ///< rank, for rooted collectives
  std::uint64_t count =
      0;  ///< elements: of a block, where a buffer has one for every rank; else of the buffer

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};
static_assert(sizeof(Descriptor) == 16 && std::is_trivially_copyable_v<Descriptor>);

/// What both sides of a point-to-point transfer of `bytes` bytes ask for. The link tells who they are.
constexpr Descriptor transferDescriptor(std::uint64_t bytes) {
  return {.collective = Collective::broadcast, .type = DataType::uint8, .kind = 1, .count = bytes};
}

constexpr bool isTransfer(const Descriptor& descriptor) { return descriptor.kind == 1; }

/// As a person would write the call: "AllReduce #7 sum float ×1024", "Broadcast #8 int32 ×3 root 1",
/// "Send/Recv of 40 bytes". `number`: of a collective among those of its communicator, from 1; 0: is not
/// known, and left out.
std::string describe(const Descriptor& descriptor, std::uint64_t number = 0);

}  // namespace tutti
