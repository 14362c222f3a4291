// What the programs know about each collective: its buffers, its bandwidth formula, what it must leave
// behind. Pure values; the call itself is in each program's main.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace tutti::perf {

class Traffic;

/// The buffers of one operation on one rank, in elements.
struct Layout {
  std::size_t param = 0;                      ///< the count argument of the call
  std::size_t send = 0;                       ///< elements read
  std::size_t recv = 0;                       ///< elements written
  std::size_t in_place_send = 0;              ///< where the input starts when both share one buffer
  std::size_t in_place_recv = 0;              ///< where the output starts then
  std::vector<std::size_t> send_blocks = {};  ///< where blocks differ in size: that for each rank
  std::vector<std::size_t> recv_blocks = {};  ///< and that from each

  std::size_t span() const { return send > recv ? send : recv; }
};

/// What rank r receives, in terms of the inputs of all ranks.
enum class Outcome {
  kReduction,        ///< the reduction of all inputs
  kReductionBlock,   ///< block r of that reduction
  kReductionAtRoot,  ///< the reduction on the root; nothing on the others
  kGather,           ///< all inputs, in the order of ranks
  kGatherAtRoot,     ///< all inputs, on the root; nothing on the others
  kRoot,             ///< the root's input
  kRootBlock,        ///< block r of the root's input
  kPrevious,         ///< the input of rank r - 1
  kTranspose,        ///< block r of every rank's input, in the order of ranks
};

struct Collective {
  std::string_view program;  ///< its name in banners and reports
  Outcome outcome;
  bool rooted;  ///< has a root
  bool in_place =
      true;  ///< defined when input and output are one buffer; else timed, but not checked, as in nccl-tests
  bool hypercube = false;            ///< in steps of groups, by 2^k ranks; its own formula of bandwidth
  const Traffic* traffic = nullptr;  ///< where blocks differ in size: by how much

  /// Buffers for at most `bytes` per rank, the larger of both sides. Collectives that deal out blocks round
  /// the block down to a multiple of 16 bytes, as nccl-tests does.
  Layout layout(std::size_t bytes, std::size_t element_bytes, int nranks, int rank) const;

  /// The largest span() of all ranks.
  std::size_t span(std::size_t bytes, std::size_t element_bytes, int nranks) const;

  /// Whether a rank other than the root has no result.
  bool leavesOthersAlone() const {
    return outcome == Outcome::kReductionAtRoot || outcome == Outcome::kGatherAtRoot;
  }

  bool reduces() const {
    return outcome == Outcome::kReduction || outcome == Outcome::kReductionBlock ||
           outcome == Outcome::kReductionAtRoot;
  }

  /// busbw = algbw * busFactor(n), algbw = algBytes(span, n) / time. Source: nccl-tests, doc/PERFORMANCE.md,
  /// and its sources for what that leaves out.
  double busFactor(int nranks) const;
  double algBytes(std::size_t span_bytes, int nranks) const;
};

inline constexpr Collective kAllReduce{"all_reduce_perf", Outcome::kReduction, false};
inline constexpr Collective kReduceScatter{"reduce_scatter_perf", Outcome::kReductionBlock, false};
inline constexpr Collective kAllGather{"all_gather_perf", Outcome::kGather, false};
inline constexpr Collective kBroadcast{"broadcast_perf", Outcome::kRoot, true};
inline constexpr Collective kReduce{"reduce_perf", Outcome::kReductionAtRoot, true};
inline constexpr Collective kSendRecv{"sendrecv_perf", Outcome::kPrevious, false, false};
inline constexpr Collective kAllToAll{"alltoall_perf", Outcome::kTranspose, false};
inline constexpr Collective kAllToAllV{"alltoallv_perf", Outcome::kTranspose, false, false};
inline constexpr Collective kGather{"gather_perf", Outcome::kGatherAtRoot, true};
inline constexpr Collective kScatter{"scatter_perf", Outcome::kRootBlock, true};
inline constexpr Collective kHypercube{"hypercube_perf", Outcome::kGather, false, true, true};

}  // namespace tutti::perf
