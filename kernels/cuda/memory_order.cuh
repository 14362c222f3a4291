// Loads and stores with an order, on memory that is global to the GPU: its own, that of peers, pinned host
// memory. System scope, for the other side may be any processor; accesses named "device" are for words that
// only kernels of this GPU share. There are no fences: an order belongs to an access, which is also what
// ThreadSanitizer understands.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace tutti {

/// A word that host code sees as an atomic, as device code does.
template <class T>
__device__ inline T* wordOf(std::atomic<T>& atomic) {
  static_assert(sizeof(atomic) == sizeof(T) && std::atomic<T>::is_always_lock_free);
  return reinterpret_cast<T*>(&atomic);
}

__device__ inline std::uint64_t globalAddress(const void* address) {
  return __cvta_generic_to_global(address);
}

__device__ inline std::uint64_t loadAcquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(globalAddress(word)) : "memory");
  return value;
}

__device__ inline std::uint32_t loadAcquire(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.b32 %0, [%1];" : "=r"(value) : "l"(globalAddress(word)) : "memory");
  return value;
}

__device__ inline std::uint64_t loadRelaxed(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.b64 %0, [%1];" : "=l"(value) : "l"(globalAddress(word)) : "memory");
  return value;
}

/// Both words in one access, each as a relaxed load of its own.
__device__ inline ulonglong2 loadRelaxedPair(std::uint64_t address) {
  ulonglong2 words;
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(__cvta_generic_to_global(reinterpret_cast<const void*>(address)))
               : "memory");
  return words;
}

__device__ inline void storeRelease(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.b64 [%0], %1;" ::"l"(globalAddress(word)), "l"(value) : "memory");
}

__device__ inline void storeRelease(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.release.sys.global.b32 [%0], %1;" ::"l"(globalAddress(word)), "r"(value) : "memory");
}

__device__ inline void storeRelaxed(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.b64 [%0], %1;" ::"l"(globalAddress(word)), "l"(value) : "memory");
}

__device__ inline void storeRelaxedPair(std::uint64_t address, ulonglong2 words) {
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(
                   __cvta_generic_to_global(reinterpret_cast<const void*>(address))),
               "l"(words.x), "l"(words.y)
               : "memory");
}

/// Returns what was there before.
__device__ inline std::uint32_t exchange(std::uint32_t* word, std::uint32_t value) {
  std::uint32_t before;
  asm volatile("atom.relaxed.sys.global.exch.b32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(globalAddress(word)), "r"(value)
               : "memory");
  return before;
}

__device__ inline std::uint32_t loadRelaxedOnDevice(const std::uint32_t* word) {
  std::uint32_t value;
  asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(globalAddress(word)) : "memory");
  return value;
}

__device__ inline void storeRelaxedOnDevice(std::uint32_t* word, std::uint32_t value) {
  asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(globalAddress(word)), "r"(value) : "memory");
}

__device__ inline void addRelaxedOnDevice(std::uint64_t* word, std::uint64_t more) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(globalAddress(word)), "l"(more) : "memory");
}

/// Returns what was there before. Whoever comes last sees what the others did before they came.
__device__ inline std::uint32_t addAcquireReleaseOnDevice(std::uint32_t* word, std::uint32_t more) {
  std::uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(globalAddress(word)), "r"(more)
               : "memory");
  return before;
}

/// Nanoseconds of a clock that all of the GPU shares.
__device__ inline std::uint64_t deviceClock() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

}  // namespace tutti
