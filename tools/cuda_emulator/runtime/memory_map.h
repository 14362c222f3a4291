// Which memory of this process CUDA knows, and as what.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "tools/cuda_emulator/runtime/mapping.h"

namespace tutti::emulator {

class MemoryPool;

enum class MemoryKind {
  device,      ///< cudaMalloc: the only kind that other processes can open
  pool,        ///< cudaMallocAsync
  variable,    ///< a __device__ variable
  imported,    ///< another process's, opened
  managed,     ///< cudaMallocManaged
  pinned,      ///< cudaMallocHost
  registered,  ///< the program's own, pinned later
};

/// The function of CUDA's that it comes from, or what it is.
const char* madeBy(MemoryKind kind);

struct Allocation {
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  unsigned flags = 0;                          ///< those of cudaHostAlloc and cudaHostRegister
  std::shared_ptr<Mapping> mapping;            ///< unless the memory is not the emulator's own
  std::shared_ptr<MemoryPool> pool = nullptr;  ///< that it was taken from
  std::uint64_t id = 0;  ///< MemoryMap's: no other allocation of the process ever has it

  /// A kernel's, which a host may not touch on a real machine.
  bool onDevice() const { return kind <= MemoryKind::imported; }
  bool onHost() const { return kind >= MemoryKind::pinned; }
  bool holds(const void* first, std::size_t count) const;
};

/// Thread-safe.
class MemoryMap {
 public:
  /// False where some of it is known already.
  bool add(const Allocation& allocation);
  /// What `address` lies in.
  std::optional<Allocation> find(const void* address) const;
  /// What begins at `base`; nothing where that is of another kind, or of none.
  std::optional<Allocation> remove(const void* base, std::initializer_list<MemoryKind> kinds);
  /// What lies on `device` and was allocated there.
  std::vector<Allocation> ofDevice(int device) const;
  std::vector<Allocation> all() const;

  /// For checked kernels. Counts what was removed (atomic).
  const std::uint64_t* removals() const { return &removals_; }
  /// What an address that no allocation holds may have been meant for: memory that was given back and held
  /// it, else the allocation that ends or begins nearest, within 1 MiB.
  struct Near {
    std::optional<Allocation> allocation;
    bool is_freed = false;
  };
  Near near(const void* address) const;

 private:
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Allocation> by_end_;  // keyed by one past the last byte
  std::uint64_t last_id_ = 0;
  std::map<std::uintptr_t, Allocation> freed_;  // the same, without mappings; where memory is checked
  std::uint64_t removals_ = 0;
};

MemoryMap& memoryMap();

}  // namespace tutti::emulator
