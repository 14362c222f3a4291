// The TCP links of one rank of one communicator: with every rank on another host, in both directions, on
// every lane.
//
// A link is one connection, made when there is first something to send. Each side keeps the link's ring in
// memory of its own, which executors use as they use a ring in shared memory; Progress moves slots one way,
// credits and results the other. README.md says how a broken connection heals.
//
// One thread drives at a time: a caller between enter() and leave(), or the Watcher in visit(). Executors
// touch the views of the links only between enter() and leave().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nccl.h"
#include "runtime/core/link.h"
#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"
#include "runtime/core/wait.h"
#include "transports/link_memory.h"
#include "transports/network.h"
#include "transports/secure_channel.h"
#include "transports/tcp/door.h"
#include "transports/tcp/link_context.h"
#include "transports/tcp/receiving_link.h"
#include "transports/tcp/sending_link.h"
#include "transports/turn.h"
#include "transports/wire.h"

namespace tutti {

/// What a rank listens on. Family none: there are no links with it.
struct TcpPeer {
  NetAddress address;
  std::string name;  ///< for messages: "rank 2 (pid 71 on node7)"
};

struct TcpOptions {
  std::uint32_t lanes = 1;
  std::uint32_t slot_count = 8;
  std::uint32_t slot_bytes = 131072;
  bool checksums = false;                    ///< of payloads; headers always carry a check
  std::chrono::milliseconds recovery{5000};  ///< a lost connection must be healed within
  /// A link could not be healed: code and what to tell the user. Called by the thread that drives, while it
  /// drives, at most once per link. May call retire() and halt().
  std::function<void(ncclResult_t, const std::string&)> fail = {};
  /// A connection was lost and has been made again: what to tell people who look for it.
  std::function<void(const std::string&)> note = {};
  std::string faults = {};  ///< to inject, for tests; see transports/README.md
};

class TcpNetwork final : public Network {
 public:
  /// `listener` listens at the address that the peers know; the secret is the communicator's. `peers` is by
  /// rank. sodium_init() must have been called. Throws Error.
  TcpNetwork(UniqueFd listener, const Secret& secret, int rank, std::vector<TcpPeer> peers,
             TcpOptions options);
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;
  /// Closes all connections as they are; drain() before, for a good end.
  ~TcpNetwork() override;

  /// This rank's side of a link with a peer that has an address. Valid as long as the network.
  LinkView inbound(std::uint32_t lane, int peer) const override;
  LinkView outbound(std::uint32_t lane, int peer) const override;
  Memory memory() override { return {memory_->all(), memory_}; }

  /// Around everything that a caller does with links. Pairs nest; the outermost one keeps others from
  /// driving.
  void enter() override;
  /// Sends what is pending, as far as that is possible without waiting.
  void leave() override;

  // Between enter() and leave(). Whoever has posted or released calls push(peer), or polls for that peer.
  void poll(int peer) override;
  void push(int peer) override;
  void nap(std::chrono::nanoseconds limit) override;

  // For the Watcher: finishes what callers left, and serves peers while no caller is inside.

  /// Readable when there is something to do for visit().
  int fd() const override { return epoll_.get(); }

  /// One non-blocking pass.
  Visit visit() override;

  /// To be set before the first enter().
  void onLeave(std::function<void()> wake) override { wake_ = std::move(wake); }

  /// Until all posted slots and owed credits are with the peers' kernels; then says good-bye on all links.
  /// False: the deadline passed before. Not between enter() and leave(). Links are of no use after it.
  bool drain(Clock::time_point deadline) override;

  /// The peer has left or died: it is not dialed any more, and broken connections with it are no failures.
  /// What it sent before is received still. Any thread.
  void retire(int peer) override;

  /// Closes all connections as they are, and moves nothing any more: after it no memory of users is touched,
  /// whatever was lent. For a communicator that failed. Any thread, also one that is inside; waits until no
  /// other one is.
  void halt() override;
  std::uint64_t alteredSlots() const override { return altered_.load(std::memory_order_relaxed); }

 private:
  /// How poll() goes on after the awaited peer's own sockets.
  enum class Manner { patient, many_lanes, by_events };

  struct Pair {
    std::unique_ptr<ReceivingLink> inbound;
    std::unique_ptr<SendingLink> outbound;
  };

  Pair& pair(std::uint32_t lane, int peer) {
    return pairs_[static_cast<std::size_t>(peer) * options_.lanes + lane];
  }
  const Pair& pair(std::uint32_t lane, int peer) const {
    return pairs_[static_cast<std::size_t>(peer) * options_.lanes + lane];
  }
  bool hasLinks(int peer) const { return pair(0, peer).outbound != nullptr; }
  ReceivingLink* find(const Hello& hello);
  void makeLinks();
  Manner pollPeer(int peer);
  void pushOutbound(SendingLink& link);
  void takeEvents();
  void handle(std::uint64_t token);
  void service();
  void flushCredits();
  bool isReadable() const;
  bool isPending() const;
  bool isSettled(Clock::time_point now) const;
  void deliverFailures();
  void sleep(std::chrono::nanoseconds limit) const;

  TcpOptions options_;
  int rank_;
  Secret secret_;
  std::vector<TcpPeer> peers_;
  std::unique_ptr<Wire> wire_;
  UniqueFd epoll_;
  std::vector<std::atomic<bool>> retired_;  ///< by rank
  std::atomic<std::uint64_t> altered_{0};
  LinkContext context_;
  std::shared_ptr<LinkMemory> memory_;  ///< may be kept by whoever pinned it

  Turn turn_;  ///< held by the thread that drives; guards all that follows
  int depth_ = 0;
  bool is_halted_ = false;
  bool has_ended_ = false;  ///< drained
  std::uint64_t polls_ = 0;
  std::uint64_t idle_polls_ = 0;         ///< since an awaited link had something
  std::vector<Pair> pairs_;              ///< by peer and lane
  std::vector<std::uint32_t> hot_lane_;  ///< by peer: where it sent last
  std::vector<SendingLink*> sending_;    ///< those that were used
  std::vector<ReceivingLink*> receiving_;
  std::unique_ptr<Door> door_;
  std::vector<std::string> failures_;  ///< to be delivered

  std::atomic<bool> watched_{false};  ///< the Watcher sleeps until fd() is readable or wake_ is called
  std::function<void()> wake_;
};

}  // namespace tutti
