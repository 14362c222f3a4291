// The verbs that deal with links: everything but combine. As HostExecutor, whose words of explanation hold
// here too: plain slots with headers, loans by address or region, results brought home, packets.
//
// Memory order: thread 0 reads a counter with acquire and a barrier follows, so that all threads see what the
// counter stands for; before thread 0 stores a counter with release, a barrier has collected what all threads
// did.
#pragma once

#include <cstdint>

#include "collectives/executor.h"
#include "kernels/cuda/combine.cuh"
#include "kernels/cuda/cuda_lane.cuh"
#include "kernels/cuda/cuda_packets.cuh"

namespace tutti {

class CudaLinks : public CudaLane {
 public:
  /// Packets: no-op. combine polls; release looks for messages that no combine has read.
  __device__ __noinline__ bool await(Inbound in) {
    if (usesPackets()) return true;
    return allSay(threadIdx.x != 0 || receive(inbound_[in.index]));
  }

  __device__ __noinline__ bool reserve(Outbound out) {
    if (usesPackets()) return true;
    CudaLinkEnd& end = outbound_[out.index];
    if (!allSay(threadIdx.x != 0 || reserveSlot(end))) return false;
    // The slot that is used again has come back.
    const std::uint64_t slots = end.view.slot_count;
    if (bringsHome()) bringHome(end, end.sequence < slots ? 0 : end.sequence - slots + 1);
    return true;
  }

  /// Behind a combine, whose barrier at the end this relies on.
  __device__ __noinline__ void post(Outbound out, std::uint64_t n) {
    if (threadIdx.x != 0) return;
    CudaLinkEnd& end = outbound_[out.index];
    const auto bytes = static_cast<std::uint32_t>(n * element_bytes_);
    countPosted(end, bytes);
    if (!usesPackets()) return publish(end, {.bytes = bytes});
    if (n == 0) writeEmptyPacket(end);
    ++end.sequence;
  }

  /// Behind a combine, too.
  __device__ __noinline__ void release(Inbound in) {
    if (threadIdx.x != 0) return;
    CudaLinkEnd& end = inbound_[in.index];
    const bool is_used = end.is_used != 0;
    end.is_used = 0;
    if (usesPackets()) {
      if (!is_used && !receiveEmptyPacket(end)) return;
      ++end.sequence;
      return;
    }
    if (is_used) {
      moved_.written_bytes += end.bytes;
      if (end.view.is_network) moved_.network_bytes += end.bytes;
    }
    ++end.sequence;
    // Orders our reads of the slot, and the result that we left, before the sender's next accesses; pairs
    // with the acquire in reserve and drain.
    storeRelease(wordOf(end.view.released->value), end.sequence);
  }

  __device__ __noinline__ bool drain(Outbound out) {
    if (usesPackets()) return true;
    CudaLinkEnd& end = outbound_[out.index];
    if (!allSay(threadIdx.x != 0 || awaitReturned(end))) return false;
    if (bringsHome()) bringHome(end, end.returning);
    return true;
  }

 protected:
  /// Programs that ask peers for results.
  __device__ bool bringsHome() const {
    const Collective collective = task_.plan.descriptor.collective;
    return task_.kind == CudaTask::Kind::collective && task_.plan.algorithm == Algorithm::direct &&
           (collective == Collective::all_reduce || collective == Collective::reduce);
  }

  __device__ const RegionPlace& regionOf(const Operand& operand) const {
    return operand.where == Operand::Where::input ? task_.input_region : task_.output_region;
  }

  /// How a loan goes. Results belong to the output.
  __device__ SlotKind kindOf(Outbound to, const Operand& from, bool returns, std::uint64_t bytes) const {
    const std::uint32_t peer = to.index;
    if (bytes == 0 || peer >= 64) return SlotKind::inline_data;
    if ((task_.lends_address >> peer & 1) != 0) return SlotKind::address;
    const bool lies_in_regions = regionOf(from).number != 0 && (!returns || task_.output_region.number != 0);
    const bool by_region = lies_in_regions && (task_.lends_region >> peer & 1) != 0;
    return by_region ? SlotKind::region : SlotKind::inline_data;
  }

  /// Thread 0. The header of loan_; the data of an inline one is in the slot.
  __device__ void publishLoan(CudaLinkEnd& end, SlotKind kind, std::uint32_t bytes) {
    const Loan& loan = loan_;
    SlotHeader header{
        .kind = kind, .returns = static_cast<std::uint16_t>(loan.returns ? 1 : 0), .bytes = bytes};
    switch (kind) {
      case SlotKind::inline_data:
        header.to = loan.to.offset;
        break;
      case SlotKind::region:
        header.from_region = regionOf(loan.from).number;
        header.from = regionOf(loan.from).offset + loan.from.offset * element_bytes_;
        if (!loan.returns) break;
        header.to_region = regionOf(loan.to).number;
        header.to = regionOf(loan.to).offset + loan.to.offset * element_bytes_;
        break;
      case SlotKind::address:
        header.from = userAddress(loan.from);
        if (loan.returns) header.to = userAddress(loan.to);
        break;
    }
    // What the slot refers to, the receiver reads itself, and counts.
    countPosted(end, kind == SlotKind::inline_data ? bytes : 0);
    if (loan.returns || kind != SlotKind::inline_data) {
      if (end.home == end.returning) end.home = end.sequence;
      end.returning = end.sequence + 1;
    }
    publish(end, header);
  }

  __device__ std::uint64_t userAddress(const Operand& operand) const {
    const bool is_input = operand.where == Operand::Where::input;
    const auto base = reinterpret_cast<std::uint64_t>(is_input ? task_.input : task_.output);
    return base + operand.offset * element_bytes_;
  }

  __device__ void countPosted(const CudaLinkEnd& end, std::uint64_t bytes) {
    ++moved_.slots;
    moved_.slot_bytes += bytes;
    if (end.view.is_network) moved_.network_bytes += bytes;
  }

  std::uint32_t element_bytes_;
  CombineJob job_;
  Loan loan_;  ///< what lend was called with, by thread 0

 private:
  // Thread 0 from here, except bringHome.

  __device__ bool receive(CudaLinkEnd& end) {
    const std::uint64_t sequence = end.sequence;
    const auto* posted = wordOf(end.view.posted->value);
    if (!waitUntil(end.view.peer, [&] { return loadAcquire(posted) > sequence; })) return false;
    // A copy: what was checked must be what is used.
    const SlotHeader header = end.view.header(sequence);
    const bool is_ours = header.descriptor == task_.plan.descriptor;
    if (!is_ours || header.sequence != sequence || header.bytes > end.view.slot_bytes) {
      fail({is_ours ? CudaFaultKind::damaged : CudaFaultKind::differs, end.view.peer, header.descriptor,
            header.bytes, header.sequence, sequence});
      return false;
    }
    const auto slot = reinterpret_cast<std::uint64_t>(end.view.slot(sequence));
    end.from = slot;
    end.to = slot;
    end.bytes = header.bytes;
    end.scale = header.scale;
    if (header.bytes == 0 || header.kind == SlotKind::inline_data) return true;
    moved_.read_bytes += header.bytes;
    if (header.kind == SlotKind::region) return resolveRegions(end, header);
    end.from = header.from;
    if (header.returns != 0) end.to = header.to;
    return true;
  }

  __device__ bool resolveRegions(CudaLinkEnd& end, const SlotHeader& header) {
    const std::int32_t peer = end.view.peer;
    end.from = mapped(peer, end.from_region, header.from_region, header.from, header.bytes);
    if (header.returns != 0) end.to = mapped(peer, end.to_region, header.to_region, header.to, header.bytes);
    return end.from != 0 && end.to != 0;
  }

  /// Where this process has a part of a peer's region; 0, and the reason left, if it has not. `known`: what
  /// the last slot referred to, most likely the same.
  __device__ std::uint64_t mapped(std::int32_t peer, CudaKnownRegion& known, std::uint32_t number,
                                  std::uint64_t offset, std::uint32_t bytes) {
    const std::uint64_t kernel = rank_->kernels + 1;
    if (known.number != number || known.kernel != kernel) {
      CudaRegion& region = rank_->regions[peer].entries[number % RegionTable::kSize];
      const bool is_known = number != 0 && loadAcquire(wordOf(region.number)) == number;
      known = {kernel, reinterpret_cast<std::uint64_t>(region.base), is_known ? region.bytes : 0, number};
    }
    if (offset <= known.bytes && bytes <= known.bytes - offset) return known.base + offset;
    fail({CudaFaultKind::unreachable, peer, {}, bytes, number, offset});
    return 0;
  }

  __device__ bool reserveSlot(CudaLinkEnd& end) {
    const auto* released = wordOf(end.view.released->value);
    const auto is_free = [&] { return end.sequence - loadAcquire(released) < end.view.slot_count; };
    if (!waitUntil(end.view.peer, is_free)) return false;
    end.to = reinterpret_cast<std::uint64_t>(end.view.slot(end.sequence));
    return true;
  }

  __device__ bool awaitReturned(CudaLinkEnd& end) {
    const auto* released = wordOf(end.view.released->value);
    return waitUntil(end.view.peer, [&] { return loadAcquire(released) >= end.returning; });
  }

  __device__ void publish(CudaLinkEnd& end, SlotHeader header) {
    header.sequence = end.sequence;
    header.descriptor = task_.plan.descriptor;
    header.scale = task_.scale.bits;
    end.view.header(end.sequence) = header;
    ++end.sequence;
    // Publishes the slot and its header; pairs with the acquire in await.
    storeRelease(wordOf(end.view.posted->value), end.sequence);
  }

  __device__ void writeEmptyPacket(CudaLinkEnd& end) {
    const auto slot = reinterpret_cast<std::uint64_t>(end.view.slot(end.sequence));
    const std::uint32_t flag = cudaPacketFlag(end.sequence, task_.plan.descriptor);
    const std::uint32_t pairs = writesWholeSlot(end.sequence) ? kCudaPacketPairs : 1;
    for (std::uint32_t pair = 0; pair < pairs; ++pair) writePackets(slot, pair, 0, flag);
  }

  __device__ bool receiveEmptyPacket(CudaLinkEnd& end) {
    const auto slot = reinterpret_cast<std::uint64_t>(end.view.slot(end.sequence));
    const std::uint32_t flag = cudaPacketFlag(end.sequence, task_.plan.descriptor);
    std::uint64_t data = 0;
    return waitUntil(end.view.peer, [&] { return readPackets(slot, 0, flag, data); });
  }

  /// All threads. Copies results that came back in slots before `before` to where they belong. Ends with a
  /// barrier: thread 0 may change the notes.
  __device__ __noinline__ void bringHome(CudaLinkEnd& end, std::uint64_t before) {
    const std::uint64_t first = end.home;
    before = before < end.returning ? before : end.returning;
    __syncthreads();
    for (std::uint64_t sequence = first; sequence < before; ++sequence) {
      const SlotHeader& header = end.view.header(sequence);
      const bool comes_home = header.kind == SlotKind::inline_data && header.returns != 0;
      if (threadIdx.x == 0) {
        job_.srcs[0] = reinterpret_cast<std::uint64_t>(end.view.slot(sequence));
        job_.dsts[0] = reinterpret_cast<std::uint64_t>(task_.output) + header.to * element_bytes_;
        job_.src_count = job_.dst_count = 1;
        end.home = sequence + 1;
      }
      __syncthreads();
      if (comes_home) copyAll(job_, header.bytes);
      __syncthreads();
    }
  }
};

}  // namespace tutti
