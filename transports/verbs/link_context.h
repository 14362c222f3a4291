// What the ends of RDMA links share: the network that they belong to.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/core/settings.h"
#include "transports/faulty/faulty_slots.h"
#include "transports/verbs/connecting.h"
#include "transports/verbs/faults.h"
#include "transports/verbs/gpu_slots.h"
#include "transports/verbs/letters.h"
#include "transports/verbs/memory.h"

namespace tutti {

using VerbsClock = std::chrono::steady_clock;

/// Outlives the links; the same for all of them.
struct VerbsContext {
  const RdmaSettings& settings;
  std::span<const VerbsPort> ports;  ///< never empty; the nearest first
  /// Which of them a link begins with: that of the ring that it belongs to, else one of the nearest.
  std::function<std::size_t(int peer, std::uint32_t lane, bool sends)> first_port;
  UserMemory& user_memory;
  ConnectingThreads& connecting;
  GpuSlots* gpu_slots;  ///< nullptr: slots lie in host memory
  int rank;
  bool checksums;
  std::chrono::milliseconds recovery;  ///< a lost connection must be healed within
  FaultySlots* faults;                 ///< nullptr for none
  /// Slots and results that came altered, of all links.
  std::atomic<std::uint64_t>& altered;
  std::function<bool(int peer)> is_retired;
  /// To the peer, over the control plane.
  std::function<void(int peer, Letter letter)> tell;
  /// A link cannot be healed.
  std::function<void(const std::string&)> fail;
  std::function<void(const std::string&)> note;       ///< for people who look for trouble; may be empty
  std::function<void(const std::string&)> tell_path;  ///< for people who want to know how; may be empty
};

/// What a device reported that its links should know.
struct VerbsEvent {
  EventEffect effect = EventEffect::none;
  const VerbsDevice* device = nullptr;
  int port = 0;                       ///< port_lost, port_back, port_changed
  const QueuePairs* pairs = nullptr;  ///< pairs_lost
  std::string text;                   ///< "mlx5_0:1: the port went down (IBV_EVENT_PORT_ERR). Is ..."

  /// Whether a connection of these pairs is of no use any more.
  bool ends(const QueuePairs& of) const {
    if (effect == EventEffect::pairs_lost) return pairs == &of;
    if (effect == EventEffect::device_lost) return device == of.port().device.get();
    return effect == EventEffect::port_lost && device == of.port().device.get() && port == of.port().number;
  }
};

/// What a device, with which `own` side of a link is registered, calls the link's slots by.
inline MemoryKeys slotKeys(const VerbsContext& context, const VerbsDevice& device,
                           const RegisteredMemory& own) {
  if (context.gpu_slots != nullptr) return context.gpu_slots->keys(device);
  return {own.localKey(), own.remoteKey()};
}

/// By which what devices write into slots can be seen. Throws Error.
inline std::shared_ptr<ReadBack> readBackOf(const VerbsContext& context, const VerbsPort& port) {
  return context.gpu_slots == nullptr ? nullptr : context.gpu_slots->readBack(port);
}

struct VerbsLinkPeer {
  int rank = -1;
  std::uint32_t lane = 0;
  std::string name;  ///< "rank 2 (pid 71 on node7)"
};

/// Without an acknowledgement of the transport for so long, while something is outstanding, a connection is
/// broken, whatever the device's own retries make of it. After a first failure less is enough.
inline constexpr std::chrono::milliseconds kSilence{2000};
inline constexpr std::chrono::milliseconds kSilenceAgain{700};

/// A receiver gives the sender so much longer to come back than the sender itself has: the sender knows more.
inline constexpr std::chrono::milliseconds kReceiverGrace{3000};

/// A slot that comes altered so often, one time after the other, is no accident.
inline constexpr unsigned kMostAlterations = 8;

/// Slots (or results) of one link that did not come as they were sent.
class Alterations {
 public:
  /// Slot `sequence` did not. Returns what to say.
  std::string add(const char* what, std::uint64_t sequence, std::atomic<std::uint64_t>& all) {
    times_ = sequence == sequence_ ? times_ + 1 : 1;
    sequence_ = sequence;
    const auto count = all.fetch_add(1, std::memory_order_relaxed) + 1;
    return fmt::format("{} {} was altered on its way and is asked for again; {} so far", what, sequence,
                       count);
  }
  bool isHopeless() const { return times_ >= kMostAlterations; }
  std::string failure(const std::string& peer) const {
    return fmt::format(
        "slot {} of the link with {} was altered on its way {} times, one after the other. Look for "
        "faulty memory, PCIe links (dmesg, edac-util) or cables on the two hosts",
        sequence_, peer, times_);
  }

 private:
  std::uint64_t sequence_ = 0;
  unsigned times_ = 0;
};

/// Since when a link has been without a connection that is good for anything. One that lived for a second
/// was.
class Outage {
 public:
  void begin(VerbsClock::time_point now) {
    if (opened_ && now - *opened_ >= kGood) end();
    if (!since_) since_ = now;
    opened_.reset();
    ++attempts_;
  }
  void opened(VerbsClock::time_point now) { opened_ = now; }
  /// Something was acknowledged.
  void end() {
    since_.reset();
    attempts_ = 0;
  }
  bool isOn() const { return since_.has_value(); }
  bool exceeds(std::chrono::milliseconds limit, VerbsClock::time_point now) const {
    return since_ && now - *since_ > limit;
  }
  unsigned attempts() const { return attempts_; }

 private:
  static constexpr std::chrono::seconds kGood{1};

  std::optional<VerbsClock::time_point> since_;
  std::optional<VerbsClock::time_point> opened_;
  unsigned attempts_ = 0;
};

}  // namespace tutti
