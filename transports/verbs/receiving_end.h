// The receiver's end of an RDMA link: the peer's device writes slots into the ring, completions say which;
// credits and results go back on the first queue pair.
//
//   absent ──► open ──► closed (bye)
//               │ ▲
//               ▼ │ the sender greets again; the old connection is ended before it learns where to go on
//              lost ──► closed (it did not come back in time, or is gone)
//
// Used by the thread that drives the network, only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/link.h"
#include "transports/verbs/link_context.h"
#include "transports/verbs/queue_pairs.h"
#include "transports/verbs/send_queue.h"

namespace tutti {

class ReceivingEnd {
 public:
  enum class Credits { lazily, all };

  ReceivingEnd(const VerbsContext& context, const LinkView& view, std::span<std::byte> own,
               VerbsLinkPeer peer);

  const LinkView& view() const { return view_; }
  bool isAbsent() const { return state_ == State::absent; }
  bool isTransient() const { return state_ == State::lost; }
  bool owesCredits() const { return credited_ < released(); }
  bool isPending() const {
    return isTransient() || (state_ == State::open && (owesCredits() || queue_.isBusy()));
  }
  /// Nothing is owed to the peer, or it will never want it.
  bool isSettled() const;

  /// Takes slots. True if there were any.
  bool receive();
  /// Sends results, and credits where the sender waits for them or enough are owed; or all.
  void push(Credits credits);
  void tend(VerbsClock::time_point now);
  void arm();

  // What the peer says.
  void hear(const HelloLetter& hello);
  void hear(const ByeLetter& bye);
  /// As SendingEnd's.
  void portFailed(const VerbsDevice* device, int port, const std::string& what);

  void close();

 private:
  enum class State { absent, open, lost, closed };

  struct Remote {
    std::uint64_t slots_at = 0;
    std::uint32_t key = 0;
  };
  struct Path {
    const VerbsPort* port = nullptr;
    GidPair gids;
  };

  std::uint64_t posted() const { return view_.posted->value.load(std::memory_order_relaxed); }
  std::uint64_t released() const { return view_.released->value.load(std::memory_order_acquire); }
  Path choosePath(const HelloLetter& hello) const;
  void answer(const HelloLetter& hello, const Path& path);
  void refuse(const HelloLetter& hello, const std::string& why);
  void take(const ibv_wc& completion, VerbsClock::time_point now);
  void publish();
  bool isDue() const;
  bool hasResult(std::uint64_t sequence) const;
  bool sendCredit();
  void lost(const std::string& problem, VerbsClock::time_point now);
  void drop();

  const VerbsContext& context_;
  LinkView view_;
  std::span<std::byte> own_;
  VerbsLinkPeer peer_;
  State state_ = State::absent;
  std::uint64_t epoch_ = 0;
  std::unique_ptr<RegisteredMemory> memory_;
  std::unique_ptr<QueuePairs> pairs_;
  std::uint32_t pair_count_ = 1;
  SendQueue queue_;
  Remote remote_;
  std::vector<bool> arrived_;   ///< by slot: written whole, and not published yet
  std::uint64_t credited_ = 0;  ///< slots whose credit is with the device
  Outage outage_;
  std::string problem_;
  std::string path_;
};

}  // namespace tutti
