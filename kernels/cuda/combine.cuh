// combine on the GPU: one pass over memory by all threads of a block. The arithmetic is defined in
// kernels/host/combine.h.
//
// Where all operands lie alike within 16 bytes, 16 bytes are moved at once, several by each thread before it
// uses the first; what is left in front and behind goes element by element, as everything does where they lie
// differently. Sources are read by plain loads: they may be slots, which peers rewrite, and so must never be
// read through the non-coherent path.
#pragma once

#include <cstdint>

#include "kernels/cuda/elements.cuh"
#include "runtime/core/types.h"

namespace tutti {

/// One call of combine with its addresses resolved. Lies in shared memory; written before a barrier.
struct CombineJob {
  std::uint64_t srcs[kMaxMeshRanks];
  std::uint64_t dsts[kMaxMeshRanks];
  std::uint64_t scales[kMaxMeshRanks];  ///< bits of a Scale, for each source
  // Packet slots among them have a flag; memory has 0. Read where links are packet links.
  std::uint32_t src_flags[kMaxMeshRanks];
  std::uint32_t dst_flags[kMaxMeshRanks];
  std::int32_t src_peers[kMaxMeshRanks];
  std::uint32_t dst_pairs[kMaxMeshRanks];  ///< to be written, however short the message
  std::uint32_t src_count;
  std::uint32_t dst_count;
  bool first_is_own;  ///< the first source is an own contribution
};

/// average: of integers, in the call that completes it: the sum is divided.
enum class Reduction : std::uint8_t { sum, scaled_sum, prod, min, max, average };

template <class T>
__device__ inline T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// Operands lie in global memory. Said so, an access need not find out which kind it is; asm, because the
// compiler believes no other way of saying it for 16 bytes. Plain accesses, which barriers order.

template <class Piece>
__device__ inline Piece loadPiece(std::uint64_t address) {
  return *at<const Piece>(address);
}
template <>
__device__ inline uint4 loadPiece(std::uint64_t address) {
  const std::uint64_t from = __cvta_generic_to_global(at<const void>(address));
  uint4 piece;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
               : "l"(from)
               : "memory");
  return piece;
}

template <class Piece>
__device__ inline void storePiece(std::uint64_t address, Piece piece) {
  *at<Piece>(address) = piece;
}
template <>
__device__ inline void storePiece(std::uint64_t address, uint4 piece) {
  const std::uint64_t to = __cvta_generic_to_global(at<void>(address));
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(piece.x), "r"(piece.y), "r"(piece.z),
               "r"(piece.w)
               : "memory");
}

/// How many bytes may be moved at once: 16, or `unit`, a smaller power of two, if the operands lie alike
/// within so many, else 1; and how many bytes lie in front of the first such piece.
struct Alignment {
  std::uint32_t width;
  std::uint32_t head;
};

__device__ inline Alignment alignmentOf(const CombineJob& job, std::uint32_t unit) {
  const std::uint64_t first = job.srcs[0];
  std::uint64_t differing = 0;
  for (std::uint32_t s = 1; s < job.src_count; ++s) differing |= job.srcs[s] ^ first;
  for (std::uint32_t d = 0; d < job.dst_count; ++d) differing |= job.dsts[d] ^ first;
  std::uint32_t width = 1;
  if ((differing & (unit - 1)) == 0) width = unit;
  if ((differing & 15) == 0) width = 16;
  return {width, static_cast<std::uint32_t>(-first) & (width - 1)};
}

/// Elements in memory one at a time, wherever they lie.
template <class Element>
__device__ inline typename Element::Group loadElement(std::uint64_t address) {
  using Group = typename Element::Group;
  if constexpr (Element::kBytes == 1) return *at<const std::uint8_t>(address);
  if (address % Element::kBytes == 0) {
    if constexpr (Element::kBytes == 2) return *at<const std::uint16_t>(address);
    if constexpr (Element::kBytes >= 4) return *at<const Group>(address);
  }
  Group group = 0;
  for (std::uint32_t i = 0; i < Element::kBytes; ++i)
    group |= Group{*at<const std::uint8_t>(address + i)} << (8 * i);
  return group;
}

template <class Element>
__device__ inline void storeElement(std::uint64_t address, typename Element::Group group) {
  if constexpr (Element::kBytes == 1) {
    *at<std::uint8_t>(address) = static_cast<std::uint8_t>(group);
    return;
  }
  if (address % Element::kBytes == 0) {
    if constexpr (Element::kBytes == 2) *at<std::uint16_t>(address) = static_cast<std::uint16_t>(group);
    if constexpr (Element::kBytes >= 4) *at<typename Element::Group>(address) = group;
    return;
  }
  for (std::uint32_t i = 0; i < Element::kBytes; ++i)
    *at<std::uint8_t>(address + i) = static_cast<std::uint8_t>(group >> (8 * i));
}

/// Bytes at a time for every operand: the loops see a vector of 16 bytes as its groups.
template <class Element>
struct Vector {
  using Group = typename Element::Group;
  static constexpr std::uint32_t kGroups = 16 / sizeof(Group);

  uint4 words;

  __device__ Group group(std::uint32_t i) const {
    const std::uint32_t all[4] = {words.x, words.y, words.z, words.w};
    if constexpr (sizeof(Group) == 4) {
      return all[i];
    } else {
      return std::uint64_t{all[2 * i + 1]} << 32 | all[2 * i];
    }
  }
  __device__ static Vector of(const Group (&groups)[kGroups]) {
    if constexpr (sizeof(Group) == 4) {
      return {{groups[0], groups[1], groups[2], groups[3]}};
    } else {
      return {{static_cast<std::uint32_t>(groups[0]), static_cast<std::uint32_t>(groups[0] >> 32),
               static_cast<std::uint32_t>(groups[1]), static_cast<std::uint32_t>(groups[1] >> 32)}};
    }
  }
};

template <class Element>
__device__ inline typename Element::Compute reduce(Reduction reduction, typename Element::Compute a,
                                                   typename Element::Compute b) {
  switch (reduction) {
    case Reduction::min:
      return Element::min(a, b);
    case Reduction::max:
      return Element::max(a, b);
    case Reduction::prod:
      return a * b;
    default:
      return a + b;
  }
}

/// 16 bytes at a time, of operands that are aligned to it.
template <class Element, Reduction kReduction>
class VectorLoop {
  using Compute = typename Element::Compute;
  using Group = typename Element::Group;
  using Vector = tutti::Vector<Element>;
  static constexpr std::uint32_t kPerVector = Vector::kGroups * Element::kPerGroup;
  /// Vectors that a thread has under way of each source: few blocks have to keep all of the memory busy, and
  /// what they become has to fit in registers.
  static constexpr std::uint32_t kUnroll = Element::kBytes == 4 ? 8 : Element::kBytes == 1 ? 2 : 4;

 public:
  /// `count` vectors, the first `offset` bytes behind the operands' addresses.
  __device__ static void run(const CombineJob& job, std::uint64_t offset, std::uint64_t count,
                             std::int32_t nranks) {
    std::uint64_t i = threadIdx.x;
    steps<kUnroll>(job, offset, count, i, nranks);
    if constexpr (kUnroll > 4) steps<4>(job, offset, count, i, nranks);
    steps<1>(job, offset, count, i, nranks);
  }

 private:
  /// From vector i on, as long as there are kVectors for this thread.
  template <std::uint32_t kVectors>
  __device__ static void steps(const CombineJob& job, std::uint64_t offset, std::uint64_t count,
                               std::uint64_t& i, std::int32_t nranks) {
    const std::uint64_t threads = blockDim.x;
    for (; i + (kVectors - 1) * threads < count; i += kVectors * threads)
      step<kVectors>(job, offset + 16 * i, 16 * threads, nranks);
  }

  template <std::uint32_t kVectors>
  __device__ static void load(Vector (&vectors)[kVectors], std::uint64_t address, std::uint64_t stride) {
#pragma unroll
    for (std::uint32_t v = 0; v < kVectors; ++v) vectors[v].words = loadPiece<uint4>(address + v * stride);
  }

  __device__ static void unpack(const Vector& vector, Compute scale, Compute (&values)[kPerVector]) {
#pragma unroll
    for (std::uint32_t g = 0; g < Vector::kGroups; ++g) {
      Compute parts[Element::kPerGroup];
      Element::unpack(vector.group(g), parts);
#pragma unroll
      for (std::uint32_t i = 0; i < Element::kPerGroup; ++i)
        values[g * Element::kPerGroup + i] =
            kReduction == Reduction::scaled_sum ? parts[i] * scale : parts[i];
    }
  }

  __device__ static Vector pack(const Compute (&values)[kPerVector], std::int32_t nranks) {
    Group groups[Vector::kGroups];
#pragma unroll
    for (std::uint32_t g = 0; g < Vector::kGroups; ++g) {
      Compute parts[Element::kPerGroup];
#pragma unroll
      for (std::uint32_t i = 0; i < Element::kPerGroup; ++i) {
        parts[i] = values[g * Element::kPerGroup + i];
        if constexpr (kReduction == Reduction::average) parts[i] = Element::divide(parts[i], nranks);
      }
      groups[g] = Element::pack(parts);
    }
    return Vector::of(groups);
  }

  __device__ static Compute scaleOf(const CombineJob& job, std::uint32_t s) {
    return kReduction == Reduction::scaled_sum ? Element::scale(job.scales[s]) : Compute{};
  }

  /// The loads of a source come before the one in front of it is used: two are under way.
  template <std::uint32_t kVectors>
  __device__ static void step(const CombineJob& job, std::uint64_t offset, std::uint64_t stride,
                              std::int32_t nranks) {
    const std::uint32_t sources = job.src_count;
    Vector next[kVectors];
    Vector now[kVectors];
    Compute sums[kVectors][kPerVector];
    load(now, job.srcs[0] + offset, stride);
    if (sources > 1) load(next, job.srcs[1] + offset, stride);
#pragma unroll
    for (std::uint32_t v = 0; v < kVectors; ++v) unpack(now[v], scaleOf(job, 0), sums[v]);
#pragma unroll 1
    for (std::uint32_t s = 1; s < sources; ++s) {
#pragma unroll
      for (std::uint32_t v = 0; v < kVectors; ++v) now[v] = next[v];
      if (s + 1 < sources) load(next, job.srcs[s + 1] + offset, stride);
#pragma unroll
      for (std::uint32_t v = 0; v < kVectors; ++v) {
        Compute values[kPerVector];
        unpack(now[v], scaleOf(job, s), values);
#pragma unroll
        for (std::uint32_t i = 0; i < kPerVector; ++i)
          sums[v][i] = reduce<Element>(kReduction, sums[v][i], values[i]);
      }
    }
#pragma unroll
    for (std::uint32_t v = 0; v < kVectors; ++v) now[v] = pack(sums[v], nranks);
#pragma unroll 1
    for (std::uint32_t d = 0; d < job.dst_count; ++d) {
      const std::uint64_t to = job.dsts[d] + offset;
#pragma unroll
      for (std::uint32_t v = 0; v < kVectors; ++v) storePiece(to + v * stride, now[v].words);
    }
  }
};

/// `count` elements one by one, each by a thread of its own; the first lies `offset` bytes behind the
/// operands' addresses.
template <class Element>
__device__ __noinline__ void reduceElements(const CombineJob& job, Reduction reduction, std::uint64_t offset,
                                            std::uint64_t count, std::int32_t nranks) {
  using Compute = typename Element::Compute;
  for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
    const std::uint64_t place = offset + i * Element::kBytes;
    Compute result[Element::kPerGroup] = {};
#pragma unroll 1
    for (std::uint32_t s = 0; s < job.src_count; ++s) {
      Compute values[Element::kPerGroup];
      Element::unpack(loadElement<Element>(job.srcs[s] + place), values);
      if (reduction == Reduction::scaled_sum) values[0] *= Element::scale(job.scales[s]);
      result[0] = s == 0 ? values[0] : reduce<Element>(reduction, result[0], values[0]);
    }
    if constexpr (Element::kIsInteger) {
      if (reduction == Reduction::average) result[0] = Element::divide(result[0], nranks);
    }
    const typename Element::Group stored = Element::pack(result);
#pragma unroll 1
    for (std::uint32_t d = 0; d < job.dst_count; ++d) storeElement<Element>(job.dsts[d] + place, stored);
  }
}

/// `n` elements, by all threads of the block. Barriers before and after are the caller's.
template <class Element, Reduction kReduction>
__device__ __noinline__ void reduceAll(const CombineJob& job, std::uint64_t n, std::int32_t nranks) {
  const Alignment alignment = alignmentOf(job, 16);
  const bool fits = alignment.width == 16 && alignment.head % Element::kBytes == 0;
  const std::uint64_t head = fits ? min(n, std::uint64_t{alignment.head / Element::kBytes}) : n;
  constexpr std::uint32_t kPerVector = 16 / Element::kBytes;
  const std::uint64_t vectors = (n - head) / kPerVector;
  const std::uint64_t tail = head + vectors * kPerVector;
  if (head != 0) reduceElements<Element>(job, kReduction, 0, head, nranks);
  VectorLoop<Element, kReduction>::run(job, head * Element::kBytes, vectors, nranks);
  if (tail != n) reduceElements<Element>(job, kReduction, tail * Element::kBytes, n - tail, nranks);
}

/// `kPieces` pieces, `stride` bytes apart, to all destinations.
template <class Unit, std::uint32_t kPieces>
__device__ inline void copyStep(const CombineJob& job, std::uint64_t offset, std::uint64_t stride) {
  const std::uint64_t from = job.srcs[0] + offset;
  const std::uint32_t destinations = job.dst_count;
  Unit pieces[kPieces];
#pragma unroll
  for (std::uint32_t k = 0; k < kPieces; ++k) pieces[k] = loadPiece<Unit>(from + k * stride);
#pragma unroll 1
  for (std::uint32_t d = 0; d < destinations; ++d) {
    const std::uint64_t to = job.dsts[d] + offset;
#pragma unroll
    for (std::uint32_t k = 0; k < kPieces; ++k) storePiece(to + k * stride, pieces[k]);
  }
}

/// From piece i on, as long as there are kPieces for this thread.
template <class Unit, std::uint32_t kPieces>
__device__ inline void copySteps(const CombineJob& job, std::uint64_t offset, std::uint64_t count,
                                 std::uint64_t& i) {
  const std::uint64_t threads = blockDim.x;
  for (; i + (kPieces - 1) * threads < count; i += kPieces * threads)
    copyStep<Unit, kPieces>(job, offset + i * sizeof(Unit), threads * sizeof(Unit));
}

/// Copies pieces of sizeof(Unit) bytes.
template <class Unit>
__device__ __noinline__ void copyPieces(const CombineJob& job, std::uint64_t offset, std::uint64_t count) {
  std::uint64_t i = threadIdx.x;
  if constexpr (sizeof(Unit) == 16) copySteps<Unit, 8>(job, offset, count, i);
  copySteps<Unit, 4>(job, offset, count, i);
  copySteps<Unit, 1>(job, offset, count, i);
}

/// Copies the bytes of the first source to all destinations. One of these may be the source.
__device__ __noinline__ inline void copyAll(const CombineJob& job, std::uint64_t bytes) {
  if (job.dst_count == 1 && job.dsts[0] == job.srcs[0]) return;
  const Alignment alignment = alignmentOf(job, 4);
  const std::uint64_t head = min(bytes, std::uint64_t{alignment.head});
  const std::uint64_t body = (bytes - head) & ~std::uint64_t{alignment.width - 1};
  copyPieces<std::uint8_t>(job, 0, head);
  if (alignment.width == 16) {
    copyPieces<uint4>(job, head, body / 16);
  } else if (alignment.width == 4) {
    copyPieces<std::uint32_t>(job, head, body / 4);
  } else {
    copyPieces<std::uint8_t>(job, head, body);
  }
  copyPieces<std::uint8_t>(job, head + body, bytes - head - body);
}

}  // namespace tutti
