// How an operation is carried out: a pure value, computed by every rank from what all ranks agree on.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/core/descriptor.h"

namespace tutti {

/// The families of programs; see collectives/programs.h.
enum class Algorithm : std::uint8_t {
  single,        ///< one rank: nothing is sent
  ring,          ///< along the ring: ring.h, chain.h
  direct,        ///< on each other's memory: direct.h
  one_shot,      ///< everything to everybody: one_shot.h
  hierarchical,  ///< inside hosts, between them, inside again: hierarchical.h
};

/// What the slots of the links look like.
enum class SlotForm : std::uint8_t {
  plain,    ///< with headers, acknowledged
  packets,  ///< data and flag in one store, for small messages
};

constexpr std::string_view name(Algorithm algorithm) {
  constexpr std::string_view kNames[] = {"single", "ring", "direct", "one_shot", "hierarchical"};
  return kNames[static_cast<int>(algorithm)];
}
constexpr std::string_view name(SlotForm form) { return form == SlotForm::plain ? "slots" : "packets"; }

/// Algorithms in each of their slot forms.
inline constexpr int kWays = 10;

/// Where the ranks of a communicator are.
struct Layout {
  std::int32_t nranks = 1;
  std::int32_t hosts = 1;  ///< groups of ranks that share memory
  /// Where every host has as many ranks, numbered one after the other: how many. Else 0.
  std::int32_t ranks_per_host = 0;

  static constexpr Layout oneHost(std::int32_t nranks) { return {nranks, 1, nranks}; }
};

/// Sizes of the links, equal on all ranks of a communicator (compared when it is made).
struct LinkShape {
  std::uint32_t lanes = 1;       ///< 0: as many as suit the memory
  std::uint32_t slot_count = 4;  ///< at least 2: a ring step holds one slot while it fills the next
  std::uint32_t slot_bytes = 0;  ///< data bytes per slot, a multiple of 64; 0: as many as suit the rank count
  std::uint32_t most_slot_bytes = 0;  ///< where that is open, at most so many; 0: the planner's bound
  std::uint32_t packet_bytes = 0;     ///< data bytes per packet slot, as this machine writes packets
  bool on_gpu = false;                ///< the ranks work on GPU memory

  friend bool operator==(const LinkShape&, const LinkShape&) = default;
};

/// What a person picked by hand for a collective, equal on all ranks; `automatic` leaves the choice to the
/// planner, `not_ring` too, where there is another way.
struct PlanOverride {
  enum class Pick : std::uint8_t { automatic, ring, direct, one_shot, hierarchical, not_ring };
  enum class Form : std::uint8_t { automatic, plain, packets };
  Pick algorithm = Pick::automatic;
  Form slots = Form::automatic;

  friend bool operator==(const PlanOverride&, const PlanOverride&) = default;
};
/// By collective.
using PlanOverrides = std::array<PlanOverride, kCollectiveCount>;

/// When a rank lends user memory by reference instead of passing it through slots. Its own business: peers
/// take what comes.
struct LoanPolicy {
  static constexpr std::uint64_t kAutomatic = ~std::uint64_t{0};
  static constexpr std::uint64_t kOnHost = 16 << 20;
  static constexpr std::uint64_t kOnGpu = 256 << 10;  ///< not measured yet

  /// Only in operations on at least so many bytes. While the data fits in the caches, lines that two cores
  /// write in turn cost more than a copy. Measured; see kernels/README.md.
  std::uint64_t least_bytes = kOnHost;
  bool copies = false;  ///< also memory that peers can only copy (process_vm_readv)
  /// Over the network, in slots of at least so many bytes: smaller ones are copied, so that an operation need
  /// not wait until they have arrived.
  std::uint64_t least_network_bytes = 64 << 10;
};

/// One operation's plan, the same on every rank.
struct Plan {
  Algorithm algorithm = Algorithm::single;
  SlotForm slots = SlotForm::plain;
  Descriptor descriptor;
  std::int32_t nranks = 1;
  std::int32_t ranks_per_host = 0;  ///< see Layout
  std::uint32_t lanes = 1;
  std::uint32_t depth = 1;          ///< rounds that a program has under way at once
  std::uint64_t slot_elements = 1;  ///< elements that fit in a slot
};

/// One rank's share of one lane of a plan: everything that a program needs to know.
struct LaneWork {
  std::int32_t nranks = 1;
  std::int32_t rank = 0;
  std::int32_t ranks_per_host = 0;      ///< see Layout
  std::int32_t root = 0;                ///< for point-to-point the peer
  std::uint64_t count = 0;              ///< elements of the operation (the stride between blocks)
  std::uint64_t begin = 0;              ///< first element of this lane
  std::uint64_t end = 0;                ///< one past its last
  std::uint32_t depth = 1;              ///< rounds that may be under way at once; below the slots of a link
  std::uint64_t slot_elements = 1;      ///< elements that fit in a slot
  const std::uint16_t* ring = nullptr;  ///< order of the ranks in the lane's ring: see RingOrders
};

}  // namespace tutti
