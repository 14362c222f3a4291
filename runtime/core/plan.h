// How an operation is carried out: a pure value, computed by every rank from what all ranks agree on.
#pragma once

#include <cstdint>

#include "runtime/core/descriptor.h"

namespace tutti {

/// The programs of collectives/programs.h.
enum class Program : std::uint8_t {
  single,
  ring_all_reduce,
  ring_reduce_scatter,
  ring_all_gather,
  chain_broadcast,
  chain_reduce
};

/// Sizes of the links, equal on all ranks of a communicator (compared when it is made).
struct LinkShape {
  std::uint32_t lanes = 1;
  std::uint32_t slot_count = 4;  ///< at least 2: a ring step holds one slot while it fills the next
  std::uint32_t slot_bytes = 0;  ///< data bytes per slot, a multiple of 64; 0: as many as suit the rank count
  std::uint32_t packet_bytes = 0;  ///< data bytes per packet slot, as this machine writes packets

  friend bool operator==(const LinkShape&, const LinkShape&) = default;
};

/// One operation's plan, the same on every rank.
struct Plan {
  Program program = Program::single;
  Descriptor descriptor;
  std::int32_t nranks = 1;
  std::uint32_t lanes = 1;
  std::uint64_t slot_elements = 1;  ///< elements that fit in a slot
};

/// One rank's share of one lane of a plan: everything that a program needs to know.
struct LaneWork {
  std::int32_t nranks = 1;
  std::int32_t rank = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;          ///< elements of the operation (the stride between blocks)
  std::uint64_t begin = 0;          ///< first element of this lane
  std::uint64_t end = 0;            ///< one past its last
  std::uint64_t slot_elements = 1;  ///< elements that fit in a slot
};

}  // namespace tutti
