// Connects the GPU memory of the ranks of a host, in steps that all of them take together.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/core/accelerator.h"
#include "runtime/core/settings.h"
#include "runtime/gpu_remains.h"
#include "runtime/process.h"
#include "runtime/wiring.h"
#include "transports/rank_memory.h"
#include "tutti/error.h"

namespace tutti {

/// Two ranks use each other's GPU memory if each has opened, written and found what the other wrote; else
/// their links lie in pinned host memory, which every GPU reaches.
class GpuWiring {
 public:
  /// `wiring` has peers, locals, shape and memory. `local`: the place of this rank on its host; `memoryOf`:
  /// the part of the host's memory of each place. All outlive this.
  GpuWiring(Process& process, Wiring& wiring, Bootstrap& bootstrap, int local,
            std::function<RankMemory(int)> memoryOf);

  /// Makes this rank's GPU half and opens the memory of the others. A meeting of all ranks.
  void open(Accelerator& gpus, const Settings& settings, const std::function<void()>& wake);
  /// After all have opened: finds out what worked. A meeting of all ranks.
  void settle();
  /// What each of the other ranks is reached by, for the log; empty: there are none.
  std::string summary() const;

  bool reaches(int local) const { return reaches_[static_cast<std::size_t>(local)]; }

 private:
  std::string wayTo(int rank) const;
  void forbid(const Settings& settings);
  void sayShared(const std::vector<GpuOffer>& offers) const;
  int localCount() const { return static_cast<int>(wiring_.locals.size()); }
  int rankAt(int local) const { return wiring_.locals[static_cast<std::size_t>(local)]; }
  const PeerInfo& peerAt(int local) const { return wiring_.peers[static_cast<std::size_t>(rankAt(local))]; }
  MemoryAccess& mine(int local) const { return memoryOf_(local_).access()[static_cast<std::size_t>(local)]; }
  MemoryAccess& theirs(int local) const {
    return memoryOf_(local).access()[static_cast<std::size_t>(local_)];
  }

  Process& process_;
  Wiring& wiring_;
  Bootstrap& bootstrap_;
  int local_;
  std::function<RankMemory(int)> memoryOf_;
  std::vector<bool> reaches_;         ///< by place
  std::vector<std::string> reasons_;  ///< by place: why not
};

/// The status line of each place on the host.
using StatusOf = std::function<RankStatus*(int)>;

/// What must outlive the communicator: moved out of its wiring.
GpuRemains takeGpuRemains(Wiring& wiring, int rank, const StatusOf& statusOf);

/// The communicator was not made on this rank: tells those who have made it, lets go of the memory of others,
/// and keeps this rank's, where it came so far, until they have done so, too.
void abandonGpu(Process& process, Wiring& wiring, int rank, const StatusOf& statusOf, const Error& error);

}  // namespace tutti
