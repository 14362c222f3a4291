// What the networks of all media have in common: whose turn it is, which links there are and which were used,
// what a caller leaves to the Watcher, and how it all ends. A medium adds its kinds of link ends, its events,
// and how it polls.
//
// A `Sender` and a `Receiver` are the two ends of a link, each with a ring in memory of its own. Both have
//   view()       for executors
//   receive()    takes what came by the medium
//   tend(now)    connections that are being made or are broken, and time's limits
//   isPending()  something is left to do that no event may tell of
//   isSettled()  nothing is owed to the peer, or it will never want it
//   close()      ends the connection as it is
// and beside that a Sender isIdle(), hasUnsent(), isUrgent(), push(); a Receiver owesCredits(),
// push(credits).
//
// One thread drives at a time: a caller between enter() and leave(), or the Watcher in visit(). Executors
// touch the views of the links only between enter() and leave().
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/unique_fd.h"
#include "transports/link_memory.h"
#include "transports/network.h"
#include "transports/turn.h"

namespace tutti {

/// Throws Error.
UniqueFd makeEpoll();

/// Until the descriptor is readable or `limit` is over; in nanoseconds on every kernel.
void sleepAt(int epoll, std::chrono::nanoseconds limit);

/// `Interface` is Network, or what extends it.
template <class Interface, class Sender, class Receiver>
class NetworkDriver : public Interface {
 public:
  NetworkDriver(const NetworkDriver&) = delete;
  NetworkDriver& operator=(const NetworkDriver&) = delete;

  LinkView inbound(std::uint32_t lane, int peer) const final { return pair(lane, peer).inbound->view(); }
  LinkView outbound(std::uint32_t lane, int peer) const final { return pair(lane, peer).outbound->view(); }
  Network::Memory memory() final { return {memory_->all(), memory_}; }
  std::uint64_t alteredSlots() const final { return altered_.load(std::memory_order_relaxed); }

  void enter() final {
    turn_.lock();
    ++depth_;
  }
  void leave() final;
  void push(int peer) final;
  void nap(std::chrono::nanoseconds limit) final;

  int fd() const final { return epoll_.get(); }
  Network::Visit visit() final;
  void onLeave(std::function<void()> wake) final { wake_ = std::move(wake); }

  bool drain(std::chrono::steady_clock::time_point deadline) final;
  void retire(int peer) final {
    retired_[static_cast<std::size_t>(peer)].store(true, std::memory_order_relaxed);
  }
  void halt() override;

 protected:
  using Clock = std::chrono::steady_clock;

  struct Pair {
    std::unique_ptr<Receiver> inbound;
    std::unique_ptr<Sender> outbound;
  };
  /// What an end is made of.
  struct Side {
    LinkView view;
    std::span<std::byte> memory;
  };

  /// `is_remote`, by rank: there are links with it.
  NetworkDriver(const NetworkOptions& options, std::vector<bool> is_remote);
  /// The medium's destructor has called endLinks().
  ~NetworkDriver() override = default;

  std::size_t linkCount() const {
    return static_cast<std::size_t>(std::ranges::count(is_remote_, true)) * lanes_ * 2;
  }
  /// In the constructor, once: `make(peer, lane, inbound, outbound)` returns the Pair on these two Sides.
  template <class Make>
  void makeLinks(std::shared_ptr<LinkMemory> memory, const Make& make);
  /// Before what the links use is gone.
  void endLinks() { pairs_.clear(); }

  std::uint32_t lanes() const { return lanes_; }
  /// A link's place among all, and back.
  std::size_t placeOf(std::uint32_t lane, int peer) const {
    return static_cast<std::size_t>(peer) * lanes_ + lane;
  }
  Pair& at(std::size_t place) { return pairs_[place]; }
  Pair& pair(std::uint32_t lane, int peer) { return pairs_[placeOf(lane, peer)]; }
  const Pair& pair(std::uint32_t lane, int peer) const { return pairs_[placeOf(lane, peer)]; }
  bool hasLinks(int peer) const { return is_remote_[static_cast<std::size_t>(peer)]; }
  bool hasLane(int peer, std::uint32_t lane) const {
    return peer >= 0 && peer < static_cast<int>(is_remote_.size()) && hasLinks(peer) && lane < lanes_;
  }
  const std::vector<Sender*>& sending() const { return sending_; }
  const std::vector<Receiver*>& receiving() const { return receiving_; }
  /// It is used from now on.
  void use(Receiver& link) {
    if (std::ranges::find(receiving_, &link) == receiving_.end()) receiving_.push_back(&link);
  }
  void push(Sender& link) {
    const bool is_new =
        link.isIdle() && link.hasUnsent() && std::ranges::find(sending_, &link) == sending_.end();
    if (is_new) sending_.push_back(&link);
    link.push();
  }

  /// Also what no caller has pushed: the last that a kernel posted, if whoever serves it did not look again.
  void pushAll() {
    for (int peer = 0; peer < static_cast<int>(is_remote_.size()); ++peer) push(peer);
  }

  // For what the ends share.
  bool isRetired(int peer) const {
    return retired_[static_cast<std::size_t>(peer)].load(std::memory_order_relaxed) || has_ended_;
  }
  void addFailure(const std::string& text) { failures_.push_back(text); }
  std::atomic<std::uint64_t>& altered() { return altered_; }
  int epoll() const { return epoll_.get(); }

  // While this thread drives.
  std::unique_lock<Turn> takeTurn() { return std::unique_lock(turn_); }
  bool isHalted() const { return is_halted_; }
  /// Everything that can be done now, once.
  void service();
  void flushCredits() {
    for (Receiver* link : receiving_) link->push(Receiver::Credits::all);
  }
  void deliverFailures();

 private:
  /// Takes what the medium has to say beside its links' own traffic.
  virtual void takeEvents() = 0;
  /// From now on fd() becomes readable when something comes.
  virtual void arm() {}
  /// Peers that wait for the arrival of what they sent learn of it now.
  virtual void acknowledge() {}
  /// Something has come already, of which no event tells any more.
  virtual bool hasMore() const { return false; }
  /// Something other than links is under way.
  virtual bool isBusy() const { return false; }
  /// On all links, which are settled.
  virtual void sayBye() = 0;

  template <class Holds>
  bool anyLink(const Holds& holds) const {
    return std::ranges::any_of(sending_, holds) || std::ranges::any_of(receiving_, holds);
  }
  bool isSettled() const {
    return !anyLink([](const auto* link) { return !link->isSettled(); });
  }

  std::uint32_t lanes_;
  std::function<void(ncclResult_t, const std::string&)> fail_;
  std::vector<bool> is_remote_;
  UniqueFd epoll_;
  std::vector<std::atomic<bool>> retired_;  ///< by rank
  std::atomic<std::uint64_t> altered_{0};
  std::shared_ptr<LinkMemory> memory_;  ///< may be kept by whoever pinned it

  Turn turn_;  ///< held by the thread that drives; guards all that follows
  int depth_ = 0;
  bool is_halted_ = false;
  bool has_ended_ = false;             ///< drained
  std::vector<Pair> pairs_;            ///< by peer and lane
  std::vector<Sender*> sending_;       ///< those that were used
  std::vector<Receiver*> receiving_;   ///< those that were used
  std::vector<std::string> failures_;  ///< to be delivered

  std::atomic<bool> watched_{false};  ///< the Watcher sleeps until fd() is readable or wake_ is called
  std::function<void()> wake_;
};

template <class Interface, class Sender, class Receiver>
NetworkDriver<Interface, Sender, Receiver>::NetworkDriver(const NetworkOptions& options,
                                                          std::vector<bool> is_remote)
    : lanes_(options.lanes),
      fail_(options.fail),
      is_remote_(std::move(is_remote)),
      epoll_(makeEpoll()),
      retired_(is_remote_.size()),
      pairs_(is_remote_.size() * lanes_) {}

template <class Interface, class Sender, class Receiver>
template <class Make>
void NetworkDriver<Interface, Sender, Receiver>::makeLinks(std::shared_ptr<LinkMemory> memory,
                                                           const Make& make) {
  memory_ = std::move(memory);
  std::size_t made = 0;
  for (int peer = 0; peer < static_cast<int>(is_remote_.size()); ++peer) {
    for (std::uint32_t lane = 0; hasLinks(peer) && lane < lanes_; ++lane, made += 2) {
      const auto side = [&](std::size_t index) {
        Side result{memory_->link(index), memory_->bytesOf(index)};
        result.view.peer = peer;
        return result;
      };
      pair(lane, peer) = make(peer, lane, side(made), side(made + 1));
    }
  }
}

// Callers.

template <class Interface, class Sender, class Receiver>
void NetworkDriver<Interface, Sender, Receiver>::leave() {
  const bool is_last = --depth_ == 0;
  bool is_urgent = false;
  if (is_last && !is_halted_) {
    for (Sender* link : sending_) link->push();
    for (Receiver* link : receiving_) link->push(Receiver::Credits::lazily);
    deliverFailures();
    is_urgent = !is_halted_ && std::ranges::any_of(sending_, &Sender::isUrgent);
  }
  turn_.unlock();
  if (!is_last || !wake_) return;
  const bool was_watched = watched_.load(std::memory_order_relaxed) && watched_.exchange(false);
  if (was_watched || is_urgent) wake_();
}

template <class Interface, class Sender, class Receiver>
void NetworkDriver<Interface, Sender, Receiver>::push(int peer) {
  if (is_halted_ || !hasLinks(peer)) return;
  for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
    Pair& links = pair(lane, peer);
    if (links.outbound->hasUnsent()) push(*links.outbound);
    if (links.inbound->owesCredits()) links.inbound->push(Receiver::Credits::lazily);
  }
}

template <class Interface, class Sender, class Receiver>
void NetworkDriver<Interface, Sender, Receiver>::nap(std::chrono::nanoseconds limit) {
  if (is_halted_) return sleepAt(epoll_.get(), limit);
  flushCredits();
  // What came before is taken now; of what comes later there will be an event.
  arm();
  service();
  if (!hasMore()) sleepAt(epoll_.get(), limit);
  service();
}

// Moving what there is.

template <class Interface, class Sender, class Receiver>
void NetworkDriver<Interface, Sender, Receiver>::service() {
  takeEvents();
  const auto now = Clock::now();
  // What has arrived first: it may show that a connection is alive.
  for (Sender* link : sending_) {
    link->receive();
    link->tend(now);
    if (link->hasUnsent()) link->push();
  }
  for (Receiver* link : receiving_) {
    link->receive();
    link->tend(now);
  }
  deliverFailures();
}

template <class Interface, class Sender, class Receiver>
void NetworkDriver<Interface, Sender, Receiver>::deliverFailures() {
  if (failures_.empty()) return;
  for (const std::string& text : std::exchange(failures_, {})) {
    if (fail_) fail_(ncclRemoteError, text);
  }
}

// The Watcher.

template <class Interface, class Sender, class Receiver>
Network::Visit NetworkDriver<Interface, Sender, Receiver>::visit() {
  const std::unique_lock turn(turn_, std::try_to_lock);
  if (!turn || depth_ != 0) return Network::Visit::busy;
  if (!is_halted_) {
    arm();
    service();
    // All that the rings have room for, which ends this.
    while (hasMore() && !is_halted_) service();
    flushCredits();
    acknowledge();
    const bool is_pending = isBusy() || anyLink([](const auto* link) { return link->isPending(); });
    if (is_pending) return Network::Visit::again;
  }
  watched_.store(true);
  return Network::Visit::idle;
}

// The end.

template <class Interface, class Sender, class Receiver>
bool NetworkDriver<Interface, Sender, Receiver>::drain(std::chrono::steady_clock::time_point deadline) {
  constexpr auto kStep = std::chrono::milliseconds(1);
  bool said_bye = false;
  for (;;) {
    {
      const std::lock_guard turn(turn_);
      if (is_halted_) return false;
      pushAll();
      flushCredits();
      service();
      acknowledge();
      if (isSettled() && !std::exchange(said_bye, true)) {
        sayBye();
        has_ended_ = true;
      }
      // Good-byes, too.
      if (said_bye && isSettled()) return true;
    }
    if (Clock::now() >= deadline) return said_bye;
    sleepAt(epoll_.get(), kStep);
  }
}

template <class Interface, class Sender, class Receiver>
void NetworkDriver<Interface, Sender, Receiver>::halt() {
  const std::lock_guard turn(turn_);
  if (std::exchange(is_halted_, true)) return;
  for (Pair& links : pairs_) {
    if (links.outbound == nullptr) continue;
    links.outbound->close();
    links.inbound->close();
  }
}

}  // namespace tutti
