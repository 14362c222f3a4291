// TUTTI_EMULATED_MEMCHECK=1: kernels are translated so that each access is asked about. Without it an access
// is an error only where it is misaligned or no memory is mapped at all.
#pragma once

#include <string>

#include "tools/cuda_emulator/machine/cuda_thread.h"

namespace tutti::emulator {

/// The memory that CUDA knows, apart from what the machine gives to kernels itself. Thread-safe.
class KnownMemory {
 public:
  virtual ~KnownMemory() = default;
  /// The allocation that holds the address; an empty range where there is none.
  virtual MemoryRange find(u64 address) const = 0;
  /// Changes whenever a range is known no more (atomic).
  virtual const u64* removals() const = 0;
  /// What is at an address that no allocation holds, in words.
  virtual std::string describe(u64 address) const = 0;
};

/// Whether the environment asks for it; the same for all of the process.
bool memoryIsChecked();
/// Before the first kernel runs. `memory` must live as long as the process.
void checkAgainst(const KnownMemory& memory);

/// Gives the thread what it needs to begin with.
void prepareChecks(CudaThread& thread);
/// Of `bytes` at `address`, which the thread does not know to be allowed. Returns if they are; else in words
/// why they are not.
std::string checkAccess(CudaThread& thread, u64 address, u32 bytes);

/// The device's heap: malloc and free of kernels.
u64 allocateOnHeap(u64 bytes);
void freeOnHeap(u64 address);

}  // namespace tutti::emulator
