// The RDMA links of one rank of one communicator: with every rank on another host, in both directions, on
// every lane.
//
// A link is a connection of reliable queue pairs, made when there is first something to send; each side keeps
// the link's ring in memory of its own, which executors use as they use a ring in shared memory. Devices move
// slots one way, credits and results the other. What the ends have to say to each other beside that
// (letters.h) goes over the control plane.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/unique_fd.h"
#include "transports/network_driver.h"
#include "transports/rdma.h"
#include "transports/verbs/link_context.h"
#include "transports/verbs/port_order.h"
#include "transports/verbs/receiving_end.h"
#include "transports/verbs/sending_end.h"

namespace tutti {

class VerbsNetwork final : public NetworkDriver<RdmaNetwork, SendingEnd, ReceivingEnd> {
 public:
  /// `ports` is not empty. Throws Error.
  VerbsNetwork(std::vector<VerbsPort> ports, RdmaOptions options);
  /// Ends all connections as they are; drain() before, for a good end. Where a peer's hardware address is
  /// being looked for, waits for the kernel to give up: see connecting.h.
  ~VerbsNetwork() override { endLinks(); }

  void tellBy(std::function<void(int peer, Letter letter)> tell) override { tell_ = std::move(tell); }
  void hear(int peer, std::span<const std::uint8_t> letter) override;
  void useMemory(std::span<std::byte> buffer) override { user_memory_.add(buffer); }
  void forgetMemory(const void* buffer) override { user_memory_.remove(buffer); }
  const std::string& slotPlace() const override { return slots_.text; }

  void poll(int peer) override;

 private:
  struct Received {
    int peer;
    Letter letter;
  };

  std::size_t firstPort(int peer, std::uint32_t lane, bool sends) const;
  bool look(int peer);
  void watchDevices();
  void takeEvents() override;
  void takeCompletionEvents();
  void takeDeviceEvents();
  void takeDeviceEvent(VerbsEvent event);
  bool reread(VerbsEvent& event);
  void takeLetters();
  void read(const Received& received);
  std::string readLetter(const Received& received);
  void arm() override;
  void sayBye() override;

  RdmaOptions options_;
  std::vector<VerbsPort> ports_;  ///< the nearest first
  PortOrder order_;
  std::vector<std::shared_ptr<VerbsDevice>> devices_;  ///< of ports_
  UserMemory user_memory_;
  FaultySlots faults_;
  ConnectingThreads connecting_;
  UniqueFd letters_fd_;
  std::function<void(int, Letter)> tell_;
  SlotPlace slots_;
  VerbsContext context_;
  std::uint64_t polls_ = 0;

  std::mutex inbox_mutex_;
  std::vector<Received> inbox_;
};

}  // namespace tutti
