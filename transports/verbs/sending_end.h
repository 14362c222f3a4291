// The sender's end of an RDMA link. It connects when there is something to send, and again whenever the
// connection breaks. A slot stays in the ring until its credit has come, so the ring is all that is needed to
// send again.
//
//   idle ──► greeting ──► connecting ──► open ──► closed (bye)
//               ▲  │          │            │
//               │  ▼          ▼            ▼
//             waiting ◄───────────────── lost ──► closed (not healed in time, or the peer is gone)
//
// A small slot is one write of header and data, with an immediate by which the receiver learns of it. A large
// one, or one in GPU memory, is two on one queue pair: the data, then the header with the immediate. A credit
// is a write with an immediate the other way, behind the result it covers; it is empty, or brings that
// result's checksum.
//
// A result goes into the sender's slot, or straight to where the user wants it if that memory is registered
// and the slot was sent by this connection: keys of an earlier one are of no use.
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

class SendingEnd {
 public:
  /// `own` is all memory of this side of the link, which devices are to reach.
  SendingEnd(const VerbsContext& context, const LinkView& view, std::span<std::byte> own, VerbsLinkPeer peer);

  const LinkView& view() const { return view_; }
  bool isIdle() const { return state_ == State::idle; }
  bool isTransient() const {
    return state_ == State::greeting || state_ == State::connecting || state_ == State::waiting;
  }
  bool hasUnsent() const { return sent_ < posted(); }
  /// Something is left to do soon: the Watcher must not look elsewhere. Acknowledgements can wait.
  bool isUrgent() const { return isTransient() || (state_ == State::open && hasUnsent()); }
  /// Something is left to do that no event may tell of.
  bool isPending() const {
    return isTransient() ||
           (state_ == State::open && (hasUnsent() || queue_.isBusy() || credits_.isPending()));
  }
  /// Nothing is owed to the peer, or it will never want it.
  bool isSettled() const;

  /// Sends what is posted; connects where there is no connection yet.
  void push();
  /// Takes acknowledgements, credits and results. True if there were any.
  bool receive();
  /// A connection that is being made, and time's limits.
  void tend(VerbsClock::time_point now);
  void arm();

  // What the peer says.
  void hear(const AnswerLetter& answer);
  void hear(const BrokenLetter& broken);
  void hear(const VerbsEvent& event);

  /// Ends the link in good order: nothing may be posted any more.
  void sayBye();
  void close();

 private:
  enum class State { idle, greeting, connecting, waiting, open, closed };

  struct Remote {
    std::uint64_t slots_at = 0;
    std::uint64_t headers_at = 0;
    std::uint32_t slots_key = 0;
    std::uint32_t headers_key = 0;
    bool takes_together = false;  ///< header and data of small slots as one write
  };

  /// What a slot carries, and the key by which the device reads it.
  struct Source {
    std::span<const std::byte> data;
    std::uint32_t key;
  };
  /// Memory of the user that devices work on.
  struct Lent {
    std::shared_ptr<RegisteredMemory> from;
    std::shared_ptr<RegisteredMemory> to;
  };

  std::uint64_t posted() const { return view_.posted->value.load(std::memory_order_acquire); }
  std::uint64_t released() const { return view_.released->value.load(std::memory_order_relaxed); }
  const VerbsPort& port() const;
  void greet(VerbsClock::time_point now);
  void tendConnecting(VerbsClock::time_point now);
  void open(VerbsClock::time_point now);
  void lost(const std::string& problem, VerbsClock::time_point now);
  void drop();
  std::uint32_t pairOf(std::uint64_t sequence) const;
  bool isLastOnPair(std::uint64_t sequence, std::uint64_t end) const;
  std::optional<ResultPlace> resultPlace(std::uint64_t sequence);
  bool send(std::uint64_t sequence, bool is_last);
  bool postTogether(std::uint64_t sequence, const SlotHeader& wire, const ibv_sge& data, ibv_send_wr& write);
  bool postApart(std::uint64_t sequence, SlotHeader& wire, ibv_sge& data, ibv_send_wr& write);
  Source sourceOf(std::uint64_t sequence);
  bool take(const ibv_wc& completion, VerbsClock::time_point now);
  std::string takeCredit(std::uint32_t low);
  bool bringHome(std::uint64_t sequence);
  void publishCredits();
  std::string failure() const;

  const VerbsContext& context_;
  LinkView view_;
  std::span<std::byte> own_;
  VerbsLinkPeer peer_;
  State state_ = State::idle;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<RegisteredMemory> memory_;
  MemoryKeys slots_;  ///< of the own slots
  std::shared_ptr<QueuePairs> pairs_;
  std::optional<Connecting> connecting_;
  AnswerLetter answer_;  ///< while connecting
  SendQueue queue_;
  Remote remote_;
  std::uint64_t sent_ = 0;
  Visibility credits_;      ///< of the results before them
  std::vector<Lent> lent_;  ///< by slot
  std::unique_ptr<SpoiledCopies> spoiled_;
  Alterations alterations_;

  Outage outage_;
  VerbsClock::time_point next_step_{};  ///< waiting: greets; greeting: gives this attempt up
  std::string problem_;
  std::string path_;  ///< both ends' ports and addresses, for messages
};

}  // namespace tutti
