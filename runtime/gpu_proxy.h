// Moves what kernels post to other hosts: a kernel cannot write to a socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/core/accelerator.h"
#include "runtime/core/unique_fd.h"
#include "transports/network.h"

namespace tutti {

/// A thread that drives the network links of one rank while kernels of the rank run, and sleeps otherwise.
///
/// It looks at the links' counters, since nothing calls it when a kernel posts: 16 times in a row, then after
/// a nap, which what arrives cuts short, of 20 µs, or of 200 µs once it has been busy for 5 ms. That nap is
/// what it can add to the latency of a slot.
class GpuProxy {
 public:
  /// `peers`: the ranks of other hosts. All outlive this.
  GpuProxy(Network& network, const GpuRank& gpu, std::vector<int> peers);
  GpuProxy(const GpuProxy&) = delete;
  GpuProxy& operator=(const GpuProxy&) = delete;
  ~GpuProxy();

  /// One more kernel is about to run. From any thread, also one of CUDA's own; takes no lock.
  void wake() noexcept;
  /// A graph was captured whose launches cannot wake it, see GpuRank::mayRunUnannounced(): while there are
  /// such, it looks for them every millisecond, every four once it has seen none for a second.
  void lookOut() noexcept { knock(); }
  /// Kernels may never end any more: from now on nobody is served.
  void stop() noexcept;

 private:
  void knock() noexcept;
  void serve();
  bool sleep();
  bool hasWork() const;
  bool pass();

  Network& network_;
  const GpuRank& gpu_;
  std::vector<int> peers_;
  UniqueFd wakeup_;
  std::atomic<std::uint64_t> expected_{0};  ///< kernels that wake() has announced
  std::uint64_t seen_ = 0;                  ///< kernels that announced themselves, as of the last look
  std::atomic<bool> stopping_{false};
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace tutti
