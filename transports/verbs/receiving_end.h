// The receiver's end of an RDMA link: the peer's device writes slots into the ring, completions say which;
// credits and results go back on the first queue pair.
//
//   absent ──► connecting ──► open ──► closed (bye)
//               │   ▲          │
//               ▼   │          ▼
//              lost ◄──────────┘   the sender greets again; the old connection is ended before it learns
//               └──► closed        where to go on (it did not come back in time, or is gone)
//
// Used by the thread that drives the network, only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/link.h"
#include "transports/verbs/connecting.h"
#include "transports/verbs/link_context.h"
#include "transports/verbs/queue_pairs.h"
#include "transports/verbs/send_queue.h"
#include "transports/verbs/spoiled_copies.h"
#include "transports/verbs/wire_header.h"

namespace tutti {

class ReceivingEnd {
 public:
  /// Which are to be sent: those that the sender waits for, or will soon; also those worth a write, since
  /// this rank waits and has nothing else to do; all.
  enum class Credits { lazily, while_waiting, all };

  ReceivingEnd(const VerbsContext& context, const LinkView& view, std::span<std::byte> own,
               VerbsLinkPeer peer);

  const LinkView& view() const { return view_; }
  bool isAbsent() const { return state_ == State::absent; }
  bool isTransient() const { return state_ == State::lost || state_ == State::connecting; }
  bool owesCredits() const { return credited_ < released(); }
  bool isPending() const {
    const bool is_busy = owesCredits() || queue_.isBusy() || slots_in_.isPending() || end_;
    return isTransient() || (state_ == State::open && is_busy);
  }
  /// Nothing is owed to the peer, or it will never want it.
  bool isSettled() const;

  /// Takes slots. True if there were any.
  bool receive();
  /// Sends results and credits.
  void push(Credits credits);
  void tend(VerbsClock::time_point now);
  void arm();

  // What the peer says.
  void hear(const HelloLetter& hello);
  void hear(const ByeLetter& bye);
  void hear(const VerbsEvent& event);

  void close();

 private:
  enum class State { absent, connecting, open, lost, closed };

  struct Path {
    const VerbsPort* port = nullptr;
    GidPair gids;
  };

  std::uint64_t posted() const { return view_.posted->value.load(std::memory_order_relaxed); }
  std::uint64_t released() const { return view_.released->value.load(std::memory_order_acquire); }
  Path choosePath(const HelloLetter& hello) const;
  void connect(Path path);
  void tendConnecting(VerbsClock::time_point now);
  void answer();
  void refuse(std::uint64_t epoch, const std::string& why);
  void salvage();
  bool take(const ibv_wc& completion, VerbsClock::time_point now);
  std::optional<std::uint64_t> arrive(std::uint32_t low);
  void publish();
  bool hasEnded() const { return end_ && posted() >= *end_; }
  bool isDue(std::uint32_t owed_limit) const;
  bool hasResult(std::uint64_t sequence) const;
  bool sendCredit();
  ResultPlace resultPlace(std::uint64_t sequence) const;
  void lost(const std::string& problem, VerbsClock::time_point now);
  void drop();

  const VerbsContext& context_;
  LinkView view_;
  std::span<std::byte> own_;
  VerbsLinkPeer peer_;
  State state_ = State::absent;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<RegisteredMemory> memory_;
  MemoryKeys slots_;  ///< of the own slots
  std::shared_ptr<QueuePairs> pairs_;
  std::optional<Connecting> connecting_;
  HelloLetter hello_;  ///< of the connection
  GidPair gids_;
  SendQueue queue_;
  std::vector<bool> arrived_;     ///< by slot: written whole, and not in its turn yet
  Visibility slots_in_;           ///< those that have come in their turn
  std::uint64_t first_here_ = 0;  ///< the first slot that this connection brings
  std::uint64_t credited_ = 0;    ///< slots whose credit is with the device
  std::unique_ptr<SpoiledCopies> spoiled_;
  Alterations alterations_;
  std::optional<std::uint64_t> end_;  ///< the sender has said good-bye after so many slots
  VerbsClock::time_point end_by_{};
  Outage outage_;
  std::string problem_;
  std::string path_;
};

}  // namespace tutti
