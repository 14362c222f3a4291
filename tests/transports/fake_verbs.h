// RDMA devices in memory, for tests: what libibverbs and a card would do, at once, in the thread that asks.
// They check what a card would only punish: queues that overflow, receives that are missing, keys and
// addresses of no registration. And they break where a test says so.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transports/verbs/device.h"

namespace tutti::test {

/// Functions in place of libibverbs'.
const Ibverbs& fakeVerbs();

/// One per process. Thread-safe; what `breakAt` calls may call all of it.
class Fabric {
 public:
  static Fabric& the();

  /// All is well, and nothing was written yet. No device may be open.
  void reset();

  /// A port, up, of a device of its own.
  VerbsPort makePort(const std::string& device, const std::string& ipv4);

  /// `action` is done when so many writes were made in all; the write itself comes after it.
  void breakAt(std::uint64_t writes, std::function<void()> action);

  // How things break. Devices by name.
  /// Its next write does not arrive, nor what follows on that queue pair, and nothing tells of it.
  void loseNext(const std::string& device);
  /// What it sends arrives, the acknowledgement does not, from now on.
  void setUnacknowledged(const std::string& device, bool is_unacknowledged);
  void setPort(const std::string& device, bool is_up);  ///< with the event
  void fail(const std::string& device, ibv_event_type event);
  /// All its queue pairs, with that status; what is posted afterwards is flushed.
  void failPairs(const std::string& device, ibv_wc_status status, bool with_event = false);
  /// The next so many attempts to make a queue pair, or to connect one, fail so.
  void refusePairs(int times, int error);
  void refuseConnections(int times, int error);
  /// Done in each attempt to connect a queue pair, in the thread that makes it.
  void onConnect(std::function<void()> action);

  std::uint64_t writes() const;
  std::size_t openPairs() const;
  /// What a card would have punished, in words.
  std::vector<std::string> violations() const;
};

}  // namespace tutti::test
