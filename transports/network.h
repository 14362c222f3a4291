// The network links of one rank: what a communicator and the Watcher see of them, whatever the medium.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "nccl.h"
#include "runtime/core/link.h"
#include "runtime/core/wait.h"

namespace tutti {

/// What networks of all media are told.
struct NetworkOptions {
  std::uint32_t lanes = 1;
  std::uint32_t slot_count = 8;
  std::uint32_t slot_bytes = 131072;
  bool checksums = false;                    ///< of payloads; headers always carry a check
  std::chrono::milliseconds recovery{5000};  ///< a lost connection must be healed within
  /// A link could not be healed: code and what to tell the user. Called by the thread that drives, while it
  /// drives, at most once per link. May call retire() and halt().
  std::function<void(ncclResult_t, const std::string&)> fail = {};
  /// A connection was lost and has been made again, or what else people want to know who look for trouble.
  std::function<void(const std::string&)> note = {};
  std::string faults = {};  ///< to inject, for tests; see README.md
};

/// One thread drives the links at a time: a caller between enter() and leave(), or the Watcher in visit().
class Network : public Progress {
 public:
  virtual ~Network() = default;

  /// This rank's sides of the links with `peer`, a rank on another host. They live as long as the network.
  virtual LinkView inbound(std::uint32_t lane, int peer) const = 0;
  virtual LinkView outbound(std::uint32_t lane, int peer) const = 0;

  /// All memory of the links, for whoever pins it, and what keeps it.
  struct Memory {
    std::span<std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  virtual Memory memory() = 0;

  /// Around what a caller does with the links. Calls nest (several programs as fibres of one thread). leave()
  /// sends what is pending, as far as that does not block.
  virtual void enter() = 0;
  virtual void leave() = 0;

  /// The network may work on this memory of the user in place, from now until forgetMemory() of its address,
  /// which the caller makes while no link uses it. Any thread.
  virtual void useMemory(std::span<std::byte> /*buffer*/) {}
  virtual void forgetMemory(const void* /*buffer*/) {}

  /// Slots and results that came altered, and were asked for again. Any thread.
  virtual std::uint64_t alteredSlots() const = 0;

  /// An epoll descriptor, readable when there is something to do.
  virtual int fd() const = 0;

  /// What the Watcher should do next.
  enum class Visit : std::uint8_t {
    busy,   ///< a caller is inside and sees to everything; look again later
    again,  ///< something is unsent, or a connection is being made: come back in a millisecond
    idle,   ///< nothing is owed: sleep until fd() is readable
  };
  /// Finishes what callers left: one non-blocking pass, if no caller is inside.
  virtual Visit visit() = 0;
  /// `wake` is called by leave() when the last visit said idle, because from then on fd() is not enough; and
  /// when it leaves something unsent.
  virtual void onLeave(std::function<void()> wake) = 0;

  /// Waits until all that was posted and released has reached the peers' hosts, and says good-bye to them.
  /// False when the deadline came first.
  virtual bool drain(std::chrono::steady_clock::time_point deadline) = 0;

  /// The peer left, or died: nothing is sent to it any more, and lost connections to it are no failures. From
  /// any thread.
  virtual void retire(int peer) = 0;

  /// Closes all connections and moves nothing any more: after it no memory of users is touched, whatever was
  /// lent. For a communicator that failed. From any thread; waits until no other one drives.
  virtual void halt() = 0;
};

}  // namespace tutti
