// Loads, stores and atomic operations of device code. Weak accesses are plain ones, strong ones are the
// host's atomics, so that ThreadSanitizer judges them. Every access must be aligned to its size: a GPU says
// so, x86 not.
#pragma once

#include "tools/cuda_emulator/machine/device/types.h"

namespace tutti::emulator {

template <class T>
using Aliasing [[gnu::may_alias]] = T;

/// Whether the thread knows that it may touch all of these bytes.
inline bool isKnown(const Thread& t, u64 address, u32 bytes) {
  if (t.known_removals != __atomic_load_n(t.removals, __ATOMIC_RELAXED)) return false;
  for (const MemoryRange& range : t.known) {
    const u64 offset = address - range.begin;
    if (offset < range.bytes && range.bytes - offset >= bytes) return true;
  }
  return false;
}

template <u32 kBytes>
[[gnu::always_inline]] inline void checkAccess(Thread& t, u64 address) {
  if (__builtin_expect((address & (kBytes - 1)) != 0, 0)) t.machine->misaligned(t, address, kBytes);
#if defined(TUTTI_CHECKED_MEMORY)
  if (__builtin_expect(!isKnown(t, address, kBytes), 0)) t.machine->check(t, address, kBytes);
#endif
}

template <class T>
[[gnu::always_inline]] inline T load(Thread& t, u64 address) {
  checkAccess<sizeof(T)>(t, address);
  return *reinterpret_cast<const Aliasing<T>*>(address);
}

template <class T>
[[gnu::always_inline]] inline void store(Thread& t, u64 address, T value) {
  checkAccess<sizeof(T)>(t, address);
  *reinterpret_cast<Aliasing<T>*>(address) = value;
}

/// Two, four or eight values of one vector access.
template <class T, u32 kCount>
struct Elements {
  T at[kCount];
};

template <class T, u32 kCount>
[[gnu::always_inline]] inline Elements<T, kCount> loadVector(Thread& t, u64 address) {
  checkAccess<sizeof(T) * kCount>(t, address);
  const auto* from = reinterpret_cast<const Aliasing<T>*>(address);
  Elements<T, kCount> elements;
  for (u32 i = 0; i < kCount; ++i) elements.at[i] = from[i];
  return elements;
}

template <class T, u32 kCount>
[[gnu::always_inline]] inline void storeVector(Thread& t, u64 address, Elements<T, kCount> elements) {
  checkAccess<sizeof(T) * kCount>(t, address);
  auto* to = reinterpret_cast<Aliasing<T>*>(address);
  for (u32 i = 0; i < kCount; ++i) to[i] = elements.at[i];
}

/// cp.async: the first `source_bytes` of kBytes, and zeros. It is complete at once, as a GPU's may be.
template <u32 kBytes>
inline void copyToShared(Thread& t, u64 target, u64 source, u32 source_bytes) {
  checkAccess<kBytes>(t, target);
  if ((source & (kBytes - 1)) != 0) t.machine->misaligned(t, source, kBytes);
  const auto* from = reinterpret_cast<const Aliasing<u32>*>(source);
  auto* to = reinterpret_cast<Aliasing<u32>*>(target);
  for (u32 at = 0; at < kBytes; at += 4) {
    const u32 left = source_bytes > at ? source_bytes - at : 0;
    if (left > 0) checkAccess<1>(t, source + at + (left < 4 ? left : 4) - 1);
    const u32 word = left > 0 ? from[at / 4] : 0;
    to[at / 4] = left >= 4 ? word : word & ((1u << (8 * left)) - 1);
  }
}

/// A strong vector access is one access of the host, as far as it has one of that width: readers of packets
/// count on it. ThreadSanitizer knows no such atomic and is shown one per element, as PTX has it.
template <class T, u32 kCount, int kOrder>
inline Elements<T, kCount> loadVectorStrong(Thread& t, u64 address) {
  checkAccess<sizeof(T) * kCount>(t, address);
  Elements<T, kCount> elements;
#if defined(__SANITIZE_THREAD__)
  for (u32 i = 0; i < kCount; ++i) {
    elements.at[i] = __atomic_load_n(reinterpret_cast<const Aliasing<T>*>(address) + i, kOrder);
  }
#else
  typedef T Whole __attribute__((vector_size(sizeof(T) * kCount), may_alias));
  const Whole whole = *reinterpret_cast<const volatile Whole*>(address);
  for (u32 i = 0; i < kCount; ++i) elements.at[i] = whole[i];
  if (kOrder != __ATOMIC_RELAXED) __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
  u64 mix = 0;
  for (u32 i = 0; i < kCount; ++i) mix = mix * 0x9e3779b97f4a7c15ull + static_cast<u64>(elements.at[i]);
  t.machine->loaded(t, address, mix);
  return elements;
}

template <class T, u32 kCount, int kOrder>
inline void storeVectorStrong(Thread& t, u64 address, Elements<T, kCount> elements) {
  checkAccess<sizeof(T) * kCount>(t, address);
#if defined(__SANITIZE_THREAD__)
  for (u32 i = 0; i < kCount; ++i) {
    __atomic_store_n(reinterpret_cast<Aliasing<T>*>(address) + i, elements.at[i], kOrder);
  }
#else
  typedef T Whole __attribute__((vector_size(sizeof(T) * kCount), may_alias));
  Whole whole;
  for (u32 i = 0; i < kCount; ++i) whole[i] = elements.at[i];
  if (kOrder != __ATOMIC_RELAXED) __atomic_thread_fence(__ATOMIC_RELEASE);
  *reinterpret_cast<volatile Whole*>(address) = whole;
#endif
}

/// 128 bits count as a vector of two.
template <class T, int kOrder>
inline T loadStrong(Thread& t, u64 address) {
  if constexpr (sizeof(T) == 16) {
    return bitCast<T>(loadVectorStrong<u64, 2, kOrder>(t, address));
  } else {
    checkAccess<sizeof(T)>(t, address);
    const T value = __atomic_load_n(reinterpret_cast<const Aliasing<T>*>(address), kOrder);
    t.machine->loaded(t, address, static_cast<u64>(value));
    return value;
  }
}

template <class T, int kOrder>
[[gnu::always_inline]] inline void storeStrong(Thread& t, u64 address, T value) {
  if constexpr (sizeof(T) == 16) {
    storeVectorStrong<u64, 2, kOrder>(t, address, bitCast<Elements<u64, 2>>(value));
  } else {
    checkAccess<sizeof(T)>(t, address);
    __atomic_store_n(reinterpret_cast<Aliasing<T>*>(address), value, kOrder);
  }
}

/// Any read-modify-write: `operation` maps the old value to the new one. Returns the old one.
template <class T, int kOrder, class Operation>
[[gnu::always_inline]] inline T update(Thread& t, u64 address, Operation operation) {
  checkAccess<sizeof(T)>(t, address);
  auto* word = reinterpret_cast<Aliasing<T>*>(address);
  T before = __atomic_load_n(word, __ATOMIC_RELAXED);
  T after = operation(before);
  while (!__atomic_compare_exchange_n(word, &before, after, false, kOrder, __ATOMIC_RELAXED)) {
    after = operation(before);
  }
  t.machine->updated(t, address, static_cast<u64>(before), before != after);
  return before;
}

template <class T, int kOrder>
inline T atomicAdd(Thread& t, u64 address, T addend) {
  checkAccess<sizeof(T)>(t, address);
  const T before = __atomic_fetch_add(reinterpret_cast<Aliasing<T>*>(address), addend, kOrder);
  t.machine->updated(t, address, static_cast<u64>(before), addend != 0);
  return before;
}

template <class T, int kOrder>
inline T atomicExchange(Thread& t, u64 address, T value) {
  checkAccess<sizeof(T)>(t, address);
  const T before = __atomic_exchange_n(reinterpret_cast<Aliasing<T>*>(address), value, kOrder);
  t.machine->updated(t, address, static_cast<u64>(before), before != value);
  return before;
}

template <class T, int kOrder>
inline T atomicCas(Thread& t, u64 address, T expected, T value) {
  checkAccess<sizeof(T)>(t, address);
  constexpr int kFailed = kOrder == __ATOMIC_RELEASE   ? __ATOMIC_RELAXED
                          : kOrder == __ATOMIC_ACQ_REL ? __ATOMIC_ACQUIRE
                                                       : kOrder;
  T before = expected;
  const bool done = __atomic_compare_exchange_n(reinterpret_cast<Aliasing<T>*>(address), &before, value,
                                                false, kOrder, kFailed);
  t.machine->updated(t, address, static_cast<u64>(before), done && before != value);
  return before;
}

}  // namespace tutti::emulator
