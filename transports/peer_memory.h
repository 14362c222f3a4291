// A peer's user memory, as far as this process can get at it: what references refer to.
//
// Three ways, from best to worst: the peer is a thread of this process; its memory is a region (ncclMemAlloc,
// registered) that this process maps, once, when it first meets it; the kernel copies (process_vm_readv).
// Which of them work is tried when the communicator is made, because namespaces, Yama (ptrace_scope) and
// seccomp may forbid each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "runtime/core/peer.h"
#include "runtime/core/region.h"
#include "transports/segment.h"

namespace tutti {

/// What one rank can do with the memory of another.
struct MemoryAccess {
  bool direct = false;    ///< same address space
  bool regions = false;   ///< maps regions
  bool copies = false;    ///< reads and writes any memory, by system calls
  bool network = false;   ///< none of these: bytes are sent, from where they lie
  bool gpu = false;       ///< opened the other's GPU memory
  bool gpu_both = false;  ///< and the other this one's: what each wrote, the other has found
};

/// Memory of one peer. Used by the thread that carries out operations.
class PeerMemory {
 public:
  /// Of a rank on another host: nothing can be done with it.
  PeerMemory() = default;

  /// `regions` lies in memory of the peer that outlives this object.
  PeerMemory(const PeerInfo& peer, const RegionTable& regions, bool is_same_process, SegmentCache& cache);

  /// Tries what this rank can do with the peer's memory. `address` and `fd` are where the peer's process has
  /// the memory that begins with `token`.
  MemoryAccess probe(const SegmentToken& token, std::uint64_t address, int fd) const;

  /// Address here of `bytes` at `offset` of a region; nullptr, with *error set, where there is none.
  std::byte* map(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes, std::string* error);

  /// Copies from and to the peer's address space. False, with *error set, where that fails.
  bool read(std::byte* to, std::uint64_t from_address, std::size_t bytes, std::string* error) const;
  bool write(std::uint64_t to_address, const std::byte* from, std::size_t bytes, std::string* error) const;

  bool isSameProcess() const { return is_same_process_; }

 private:
  const Segment& segmentOf(std::uint32_t region);
  void forgetDeadRegions();

  std::int32_t pid_ = 0;
  const RegionTable* regions_ = nullptr;
  bool is_same_process_ = false;
  SegmentCache* cache_ = nullptr;
  std::map<std::uint32_t, std::shared_ptr<Segment>> mapped_;
};

}  // namespace tutti
