// Each block owns a part of the buffer and a link of its own to the right neighbour, cut into pieces of n
// slots. Of a piece, rank r sends slot r, adds what it has to what comes and passes that on n - 2 times,
// completes slot r + 1, and then the completed slots go round the same way: 2(n - 1) sends per piece.
//
//   n = 4, slot 0:   rank 0 ─► 1 (+) ─► 2 (+) ─► 3 (+, complete) ─► 0 ─► 1 ─► 2
#include "bench/gpu/ring_yardstick.h"

namespace tutti::gpu_bench {
namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 4;
constexpr std::uint32_t kMostPolls = 1U << 26;  // about a minute; then the launch fails, rather than hang

__device__ std::uint64_t loadAcquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.gpu.global.b64 %0, [%1];"
               : "=l"(value)
               : "l"(__cvta_generic_to_global(word))
               : "memory");
  return value;
}

__device__ void storeRelease(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.gpu.global.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(word)), "l"(value)
               : "memory");
}

__device__ void awaitAtLeast(const std::uint64_t* word, std::uint64_t value) {
  for (std::uint32_t polls = 0; loadAcquire(word) < value; ++polls) {
    if (polls == kMostPolls) __trap();
  }
}

__device__ float4 add(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

/// first (+ second) to one or two places, by all threads. nullptr: none.
template <bool kAdds, bool kTwice>
__device__ void move(float4* to, float4* also_to, const float4* first, const float4* second,
                     std::uint32_t vectors) {
  std::uint32_t i = threadIdx.x;
  for (; i + (kUnroll - 1) * kThreads < vectors; i += kUnroll * kThreads) {
    float4 a[kUnroll];
    float4 b[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      a[k] = first[i + k * kThreads];
      if constexpr (kAdds) b[k] = second[i + k * kThreads];
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      if constexpr (kAdds) a[k] = add(b[k], a[k]);
      to[i + k * kThreads] = a[k];
      if constexpr (kTwice) also_to[i + k * kThreads] = a[k];
    }
  }
  for (; i < vectors; i += kThreads) {
    float4 a = first[i];
    if constexpr (kAdds) a = add(second[i], a);
    to[i] = a;
    if constexpr (kTwice) also_to[i] = a;
  }
}

/// This block's two links, and how far they are.
struct Links {
  RingRank rank;
  std::uint64_t received;
  std::uint64_t sent;

  __device__ float4* slot(float4* slots, std::uint64_t sequence) const {
    return slots +
           (blockIdx.x * rank.slot_count + sequence % rank.slot_count) * std::uint64_t{rank.slot_vectors};
  }

  /// One step: waits for what it needs, moves, publishes.
  template <bool kReceives, bool kSends, bool kAdds, bool kKeeps>
  __device__ void step(float4* out, const float4* in, std::uint32_t vectors) {
    RingLink& from = rank.in[blockIdx.x];
    RingLink& to = rank.out[blockIdx.x];
    if (threadIdx.x == 0) {
      if constexpr (kReceives) awaitAtLeast(&from.posted, received + 1);
      if constexpr (kSends)
        awaitAtLeast(&to.released, sent < rank.slot_count ? 0 : sent - rank.slot_count + 1);
    }
    __syncthreads();
    float4* slot_in = slot(rank.slots_in, received);
    float4* slot_out = slot(rank.slots_out, sent);
    const float4* first = kReceives ? slot_in : in;
    move<kAdds, kSends && kKeeps>(kKeeps ? out : slot_out, slot_out, first, in, vectors);
    __syncthreads();
    if constexpr (kReceives) ++received;
    if constexpr (kSends) ++sent;
    if (threadIdx.x != 0) return;
    if constexpr (kSends) storeRelease(&to.posted, sent);
    if constexpr (kReceives) storeRelease(&from.released, received);
  }
};

__global__ void __launch_bounds__(kThreads, 1)
    ringAllReduce(const RingRank rank, const float4* in, float4* out, std::size_t begin_step,
                  std::size_t vectors) {
  // Both counters of a link are this rank's last word on it.
  Links links{rank, rank.in[blockIdx.x].released, rank.out[blockIdx.x].posted};
  const int n = rank.nranks;
  const std::size_t begin = blockIdx.x * begin_step;
  const std::size_t end = min(begin + begin_step, vectors);
  const std::size_t whole = std::size_t{rank.slot_vectors} * n;
  for (std::size_t piece = begin; piece < end; piece += whole) {
    const std::size_t rest = min(whole, end - piece);
    const std::size_t share = (rest + n - 1) / n;
    const auto at = [&](int part) { return piece + min(rest, share * ((part + 2 * n) % n)); };
    const auto count = [&](int part) {
      const std::size_t from = min(rest, share * ((part + 2 * n) % n));
      return static_cast<std::uint32_t>(min(rest - from, share));
    };
    const int r = rank.rank;
    links.step<false, true, false, false>(nullptr, in + at(r), count(r));
    for (int s = 1; s < n - 1; ++s)
      links.step<true, true, true, false>(nullptr, in + at(r - s), count(r - s));
    links.step<true, true, true, true>(out + at(r + 1), in + at(r + 1), count(r + 1));
    for (int s = 0; s < n - 2; ++s)
      links.step<true, true, false, true>(out + at(r - s), nullptr, count(r - s));
    links.step<true, false, false, true>(out + at(r + 2), nullptr, count(r + 2));
  }
}

}  // namespace

cudaError_t launchRing(const RingRank& rank, int blocks, const float4* in, float4* out, std::size_t vectors,
                       cudaStream_t stream) {
  const std::size_t step =
      (vectors + static_cast<std::size_t>(blocks) - 1) / static_cast<std::size_t>(blocks);
  ringAllReduce<<<blocks, kThreads, 0, stream>>>(rank, in, out, step, vectors);
  return cudaGetLastError();
}

cudaError_t ringBlocksPerMultiprocessor(int* blocks) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, ringAllReduce, kThreads, 0);
}

}  // namespace tutti::gpu_bench
