// Functions that CUDA's device runtime provides, in the calling convention of translated functions: results
// and parameters by address. And the few constants of the device.
#pragma once

#include "tools/cuda_emulator/machine/device/memory.h"

namespace tutti::emulator {

constexpr u32 kSms = 16;

/// Blocks are dealt to the multiprocessors in turn.
inline u32 smOf(const Thread& t) {
  return (t.ctaid.x + t.nctaid.x * (t.ctaid.y + t.nctaid.y * t.ctaid.z)) % kSms;
}

inline u32 wrapAdd(u32 a, u32 b) { return a + b; }
inline u32 wrapSub(u32 a, u32 b) { return a - b; }

/// Memory of this thread alone, aligned for certain.
template <class T>
[[gnu::always_inline]] inline T peek(u64 address) {
  return *reinterpret_cast<const Aliasing<T>*>(address);
}

template <class T>
[[gnu::always_inline]] inline void poke(u64 address, T value) {
  *reinterpret_cast<Aliasing<T>*>(address) = value;
}

inline u64 parameter(const u8* at) { return peek<u64>(reinterpret_cast<u64>(at)); }

inline void f_vprintf(Thread& t, u8* result, u8* format, u8* arguments) {
  poke<u32>(reinterpret_cast<u64>(result), t.machine->print(t, parameter(format), parameter(arguments)));
}

inline void f___assertfail(Thread& t, u8* message, u8* file, u8* line, u8* function, u8*) {
  t.machine->failAssertion(t, parameter(message), parameter(file), peek<u32>(reinterpret_cast<u64>(line)),
                           parameter(function));
}

inline void f_malloc(Thread& t, u8* result, u8* bytes) {
  poke<u64>(reinterpret_cast<u64>(result), t.machine->allocate(t, parameter(bytes)));
}

inline void f_free(Thread& t, u8* address) { t.machine->release(t, parameter(address)); }

}  // namespace tutti::emulator
