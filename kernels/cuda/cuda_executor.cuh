// Runs programs on a GPU: one block per lane, all of whose threads run the program alike.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/cuda_links.cuh"

namespace tutti {

/// What transfers move: nothing is reduced.
struct Bytes : UInt8 {};

/// An executor of one block, for one data type. Lies in shared memory: begin() comes first, not a
/// constructor.
template <class Element>
class CudaExecutor : public CudaLinks {
  using Compute = typename Element::Compute;
  using Group = typename Element::Group;
  static constexpr bool kReduces = !std::is_same_v<Element, Bytes>;
  static constexpr std::uint32_t kPerPair = 8 / Element::kBytes;  ///< elements in two packets
  static constexpr std::uint32_t kGroupsPerPair = 8 / sizeof(Group);

 public:
  __device__ void begin(const CudaTask& task, std::uint32_t lane) {
    CudaLane::begin(task, lane);
    if (threadIdx.x != 0) return;
    element_bytes_ = Element::kBytes;
    if (task.scale_at == nullptr) return;
    const auto scalar = reinterpret_cast<std::uint64_t>(task.scale_at);
    task_.scale.bits = Element::scaleOf(loadElement<Element>(scalar));
  }

  __device__ bool combine(const Operands& dsts, const Operands& srcs, std::uint64_t n, Last last) {
    if (n == 0) return true;
    if (threadIdx.x == 0) {
      dsts_ = dsts;
      srcs_ = srcs;
    }
    return combineListed(n, last == Last::yes);
  }

  __device__ void lend(Outbound out, std::uint64_t n, const Loan& loan) {
    if (threadIdx.x == 0) loan_ = loan;
    lendFrom(out, n, loan.from, loan.returns);
  }

 private:
  static constexpr std::uint64_t kUnitScale = Element::kIsInteger ? 1 : std::bit_cast<std::uint64_t>(1.0);

  // The first warp, a thread for each operand.

  __device__ void setSource(std::uint32_t i, Operand operand) {
    std::uint64_t scale = task_.scale.bits;
    if (usesPackets()) job_.src_flags[i] = 0;
    if (operand.where != Operand::Where::inbound_slot) {
      job_.srcs[i] = userAddress(operand);
    } else if (usesPackets()) {
      CudaLinkEnd& end = inbound_[operand.link];
      job_.srcs[i] = reinterpret_cast<std::uint64_t>(end.view.slot(end.sequence));
      job_.src_flags[i] = cudaPacketFlag(end.sequence, task_.plan.descriptor);
      job_.src_peers[i] = end.view.peer;
      end.is_used = 1;
    } else {
      job_.srcs[i] = inbound_[operand.link].from;
      scale = inbound_[operand.link].scale;
    }
    job_.scales[i] = operand.is_own ? scale : kUnitScale;
    if (i == 0) job_.first_is_own = operand.is_own;
  }

  __device__ void setDestination(std::uint32_t i, Operand operand) {
    if (usesPackets()) job_.dst_flags[i] = 0;
    if (operand.where == Operand::Where::output) {
      job_.dsts[i] = userAddress(operand);
    } else if (operand.where == Operand::Where::inbound_slot) {
      job_.dsts[i] = inbound_[operand.link].to;
      inbound_[operand.link].is_used = 1;
    } else if (usesPackets()) {
      const CudaLinkEnd& end = outbound_[operand.link];
      job_.dsts[i] = reinterpret_cast<std::uint64_t>(end.view.slot(end.sequence));
      job_.dst_flags[i] = cudaPacketFlag(end.sequence, task_.plan.descriptor);
      job_.dst_pairs[i] = writesWholeSlot(end.sequence) ? kCudaPacketPairs : 0;
    } else {
      job_.dsts[i] = outbound_[operand.link].to;
    }
  }

  // All threads.

  /// Lends loan_, of which thread 0 alone knows the rest.
  __device__ __noinline__ void lendFrom(Outbound out, std::uint64_t n, Operand from, bool returns) {
    const std::uint64_t bytes = n * Element::kBytes;
    const SlotKind kind = usesPackets() ? SlotKind::inline_data : kindOf(out, from, returns, bytes);
    if (kind == SlotKind::inline_data) combine(slot(out), from, n, Last::no);
    if (usesPackets()) return post(out, n);
    if (threadIdx.x == 0) publishLoan(outbound_[out.index], kind, static_cast<std::uint32_t>(bytes));
  }

  /// Combines srcs_ into dsts_, which thread 0 has written.
  __device__ __noinline__ bool combineListed(std::uint64_t n, bool is_last) {
    if (threadIdx.x < warpSize) {
      __syncwarp();
      for (std::uint32_t i = threadIdx.x; i < srcs_.size(); i += warpSize) setSource(i, srcs_[i]);
      for (std::uint32_t i = threadIdx.x; i < dsts_.size(); i += warpSize) setDestination(i, dsts_[i]);
      if (threadIdx.x == 0) {
        job_.src_count = srcs_.size();
        job_.dst_count = dsts_.size();
      }
    }
    __syncthreads();
    bool has_moved = true;
    if (usesPackets()) {
      has_moved = movePackets(n, reductionOf(is_last), isCopy(is_last));
    } else if (isCopy(is_last)) {
      copyAll(job_, n * Element::kBytes);
    } else {
      reduceMemory(n, reductionOf(is_last));
    }
    return allSay(has_moved);
  }

  /// Bits move as they are.
  __device__ bool isCopy(bool is_last) const {
    if constexpr (!kReduces) return true;
    if (job_.src_count != 1) return false;
    const RedOp op = task_.plan.descriptor.op;
    if (op == RedOp::avg && Element::kIsInteger) return !is_last;
    return (op != RedOp::avg && op != RedOp::premul_sum) || !job_.first_is_own;
  }

  __device__ Reduction reductionOf(bool is_last) const {
    switch (task_.plan.descriptor.op) {
      case RedOp::sum:
        return Reduction::sum;
      case RedOp::prod:
        return Reduction::prod;
      case RedOp::max:
        return Reduction::max;
      case RedOp::min:
        return Reduction::min;
      case RedOp::avg:
        if constexpr (Element::kIsInteger) return is_last ? Reduction::average : Reduction::sum;
        return Reduction::scaled_sum;
      case RedOp::premul_sum:
        return Reduction::scaled_sum;
    }
    return Reduction::sum;
  }

  __device__ void reduceMemory(std::uint64_t n, Reduction reduction) {
    if constexpr (kReduces) {
      const std::int32_t nranks = task_.plan.nranks;
      switch (reduction) {
        case Reduction::sum:
          return reduceAll<Element, Reduction::sum>(job_, n, nranks);
        case Reduction::scaled_sum:
          return reduceAll<Element, Reduction::scaled_sum>(job_, n, nranks);
        case Reduction::prod:
          return reduceAll<Element, Reduction::prod>(job_, n, nranks);
        case Reduction::min:
          return reduceAll<Element, Reduction::min>(job_, n, nranks);
        case Reduction::max:
          return reduceAll<Element, Reduction::max>(job_, n, nranks);
        case Reduction::average:
          if constexpr (Element::kIsInteger) return reduceAll<Element, Reduction::average>(job_, n, nranks);
      }
    }
  }

  /// Where operands may be packet slots: 8 bytes of data at a time, each pair of packets polled by the thread
  /// that needs it. False once the operation has failed.
  __device__ bool movePackets(std::uint64_t n, Reduction reduction, bool is_copy) {
    if constexpr (!kReduces) return true;
    const auto elements = static_cast<std::uint32_t>(n);
    const std::uint32_t pairs = (elements + kPerPair - 1) / kPerPair;
    for (std::uint32_t pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
      const std::uint32_t some = min(kPerPair, elements - pair * kPerPair);
      Compute result[kPerPair] = {};
      std::uint64_t data = 0;
#pragma unroll 1
      for (std::uint32_t s = 0; s < job_.src_count; ++s) {
        if (!loadPair(s, pair, some, data)) return false;
        if (!is_copy) accumulate(s, data, reduction, result);
      }
      if (!is_copy) data = finished(result, reduction);
#pragma unroll 1
      for (std::uint32_t d = 0; d < job_.dst_count; ++d) storePair(d, pair, some, data);
    }
    for (std::uint32_t d = 0; d < job_.dst_count; ++d) {
      const std::uint32_t all = job_.dst_flags[d] != 0 ? job_.dst_pairs[d] : 0;
      for (std::uint32_t pair = pairs + threadIdx.x; pair < all; pair += blockDim.x)
        writePackets(job_.dsts[d], pair, 0, job_.dst_flags[d]);
    }
    return true;
  }

  __device__ void accumulate(std::uint32_t s, std::uint64_t data, Reduction reduction,
                             Compute (&result)[kPerPair]) {
#pragma unroll
    for (std::uint32_t g = 0; g < kGroupsPerPair; ++g) {
      Compute values[Element::kPerGroup];
      Element::unpack(static_cast<Group>(data >> (32 * g)), values);
#pragma unroll
      for (std::uint32_t i = 0; i < Element::kPerGroup; ++i) {
        Compute& to = result[g * Element::kPerGroup + i];
        if (reduction == Reduction::scaled_sum) values[i] *= Element::scale(job_.scales[s]);
        to = s == 0 ? values[i] : reduce<Element>(reduction, to, values[i]);
      }
    }
  }

  __device__ std::uint64_t finished(const Compute (&result)[kPerPair], Reduction reduction) {
    std::uint64_t data = 0;
#pragma unroll
    for (std::uint32_t g = 0; g < kGroupsPerPair; ++g) {
      Compute values[Element::kPerGroup];
#pragma unroll
      for (std::uint32_t i = 0; i < Element::kPerGroup; ++i) {
        values[i] = result[g * Element::kPerGroup + i];
        if constexpr (Element::kIsInteger) {
          if (reduction == Reduction::average) values[i] = Element::divide(values[i], task_.plan.nranks);
        }
      }
      data |= std::uint64_t{Element::pack(values)} << (32 * g);
    }
    return data;
  }

  /// The `some` elements of source s in pair number `pair`.
  __device__ bool loadPair(std::uint32_t s, std::uint32_t pair, std::uint32_t some, std::uint64_t& data) {
    const std::uint32_t flag = job_.src_flags[s];
    const std::uint64_t where = job_.srcs[s];
    if (flag != 0) return waitUntil(job_.src_peers[s], [&] { return readPackets(where, pair, flag, data); });
    const std::uint64_t from = where + std::uint64_t{pair} * 8;
    if (some == kPerPair && from % 8 == 0) {
      data = *at<const std::uint64_t>(from);
      return true;
    }
    data = 0;
    for (std::uint32_t i = 0; i < some; ++i)
      data |= std::uint64_t{loadElement<Element>(from + i * Element::kBytes)} << (8 * Element::kBytes * i);
    return true;
  }

  __device__ void storePair(std::uint32_t d, std::uint32_t pair, std::uint32_t some, std::uint64_t data) {
    const std::uint32_t flag = job_.dst_flags[d];
    if (flag != 0) return writePackets(job_.dsts[d], pair, data, flag);
    const std::uint64_t to = job_.dsts[d] + std::uint64_t{pair} * 8;
    if (some == kPerPair && to % 8 == 0) {
      *at<std::uint64_t>(to) = data;
      return;
    }
    for (std::uint32_t i = 0; i < some; ++i)
      storeElement<Element>(to + i * Element::kBytes, static_cast<Group>(data >> (8 * Element::kBytes * i)));
  }

  Operands dsts_;  ///< what combine was called with
  Operands srcs_;
};

}  // namespace tutti
