// The RDMA links of one rank of one communicator: with every rank on another host, in both directions, on
// every lane.
//
// A link is a connection of reliable queue pairs, made when there is first something to send; each side keeps
// the link's ring in memory of its own, which executors use as they use a ring in shared memory. Devices move
// slots one way, credits and results the other. What the ends have to say to each other beside that
// (letters.h) goes over the control plane.
//
// One thread drives at a time: a caller between enter() and leave(), or the Watcher in visit(). Executors
// touch the views of the links only between enter() and leave().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/unique_fd.h"
#include "transports/link_memory.h"
#include "transports/rdma.h"
#include "transports/turn.h"
#include "transports/verbs/link_context.h"
#include "transports/verbs/receiving_end.h"
#include "transports/verbs/sending_end.h"

namespace tutti {

class VerbsNetwork final : public RdmaNetwork {
 public:
  /// `ports` is not empty. Throws Error.
  VerbsNetwork(std::vector<VerbsPort> ports, RdmaOptions options);
  VerbsNetwork(const VerbsNetwork&) = delete;
  VerbsNetwork& operator=(const VerbsNetwork&) = delete;
  /// Ends all connections as they are; drain() before, for a good end.
  ~VerbsNetwork() override;

  void tellBy(std::function<void(int peer, Letter letter)> tell) override { tell_ = std::move(tell); }
  void hear(int peer, std::span<const std::uint8_t> letter) override;
  void useMemory(std::span<std::byte> buffer) override { user_memory_.add(buffer); }
  void forgetMemory(const void* buffer) override { user_memory_.remove(buffer); }
  const std::string& slotPlace() const override { return slots_.text; }

  LinkView inbound(std::uint32_t lane, int peer) const override;
  LinkView outbound(std::uint32_t lane, int peer) const override;
  Memory memory() override { return {memory_->all(), memory_}; }

  void enter() override;
  void leave() override;
  void poll(int peer) override;
  void push(int peer) override;
  void nap(std::chrono::nanoseconds limit) override;
  int fd() const override { return epoll_.get(); }
  Visit visit() override;
  void onLeave(std::function<void()> wake) override { wake_ = std::move(wake); }
  bool drain(std::chrono::steady_clock::time_point deadline) override;
  void retire(int peer) override;
  void halt() override;
  std::uint64_t alteredSlots() const override { return altered_.load(std::memory_order_relaxed); }

 private:
  struct Pair {
    std::unique_ptr<ReceivingEnd> inbound;
    std::unique_ptr<SendingEnd> outbound;
  };
  struct Received {
    int peer;
    Letter letter;
  };

  Pair& pair(std::uint32_t lane, int peer) {
    return pairs_[static_cast<std::size_t>(peer) * options_.lanes + lane];
  }
  const Pair& pair(std::uint32_t lane, int peer) const {
    return pairs_[static_cast<std::size_t>(peer) * options_.lanes + lane];
  }
  bool hasLinks(int peer) const { return pair(0, peer).outbound != nullptr; }
  void makeLinks();
  void watchDevices();
  void pushOutbound(SendingEnd& link);
  void takeEvents();
  void takeCompletionEvents();
  void takeDeviceEvents();
  void takeDeviceEvent(const VerbsEvent& event);
  void takeLetters();
  void read(const Received& received);
  std::string readLetter(const Received& received);
  void service();
  void arm();
  void flushCredits();
  bool isPending() const;
  bool isSettled() const;
  void deliverFailures();
  void sleep(std::chrono::nanoseconds limit) const;

  RdmaOptions options_;
  std::vector<VerbsPort> ports_;
  std::vector<std::shared_ptr<VerbsDevice>> devices_;  ///< of ports_
  UserMemory user_memory_;
  FaultySlots faults_;
  std::atomic<std::uint64_t> altered_{0};
  UniqueFd epoll_;
  UniqueFd letters_fd_;
  std::vector<std::atomic<bool>> retired_;  ///< by rank
  std::function<void(int, Letter)> tell_;
  SlotPlace slots_;
  std::shared_ptr<LinkMemory> memory_;  ///< may be kept by whoever pinned it
  VerbsContext context_;

  std::mutex inbox_mutex_;
  std::vector<Received> inbox_;

  Turn turn_;  ///< held by the thread that drives; guards all that follows
  int depth_ = 0;
  bool is_halted_ = false;
  bool has_ended_ = false;  ///< drained
  std::uint64_t polls_ = 0;
  std::vector<Pair> pairs_;               ///< by peer and lane
  std::vector<SendingEnd*> sending_;      ///< those that were used
  std::vector<ReceivingEnd*> receiving_;  ///< those that were used
  std::vector<std::string> failures_;     ///< to be delivered

  std::atomic<bool> watched_{false};  ///< the Watcher sleeps until fd() is readable or wake_ is called
  std::function<void()> wake_;
};

}  // namespace tutti
