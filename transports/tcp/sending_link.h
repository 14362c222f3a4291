// The sender's end of a TCP link. It dials when there is something to send, and again whenever the connection
// breaks. A slot stays in the ring until its credit has come, so the ring is all that is needed to send
// again.
//
//   idle ──► greeting ──► open ──► closed (bye)
//               ▲  │        │
//               │  ▼        ▼
//             waiting ◄─── lost ──► closed (not healed in time, or the peer is gone)
//
// Used by the thread that drives the network, only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/link.h"
#include "runtime/core/unique_fd.h"
#include "transports/secure_channel.h"
#include "transports/tcp/frame_reader.h"
#include "transports/tcp/frame_writer.h"
#include "transports/tcp/frames.h"
#include "transports/tcp/link_context.h"
#include "transports/tcp/silence.h"

namespace tutti {

class SendingLink final : private FrameReader::Frames, private FrameWriter::Frames {
 public:
  SendingLink(const LinkContext& context, const LinkView& view, LinkPeer peer, std::uint64_t token);

  const LinkView& view() const { return view_; }
  bool isIdle() const { return state_ == State::idle; }
  /// A connection is being made, or waited for.
  bool isTransient() const { return state_ == State::greeting || state_ == State::waiting; }
  bool hasUnsent() const { return sent_ < posted() || writer_.isInside() || owesBye(); }
  /// Something is left to do soon: the Watcher must not look elsewhere.
  bool isUrgent() const { return isTransient() || (state_ == State::open && hasUnsent()); }
  /// Something is left to do that no event will tell of.
  bool isPending() const {
    return isUrgent() || is_readable_ || (state_ == State::open && silence_.isPossible());
  }
  /// Whether the executor may be waiting for something that comes from the peer on this link.
  bool isAwaited() const {
    const std::uint64_t back = released();
    return awaited_ > back || posted() - back >= view_.slot_count;
  }
  /// The slots are large: asking the socket again and again would be in the way of its own traffic, so its
  /// events are waited for.
  bool isBulk() const { return bulk_; }
  /// Everything posted is with the peer's kernel, or will never be wanted.
  bool isSettled() const;

  /// Sends what is posted; dials where there is no connection yet.
  void push();
  /// Takes credits and results, where an event has told of some.
  void receive() {
    if (is_readable_) ask();
  }
  /// Asks the socket for them, whatever events say.
  void ask();
  /// Moves a connection that is being made, ends one that is broken, and minds time's limits.
  void tend(Clock::time_point now);
  /// The socket has news.
  void wake() {
    is_readable_ = true;
    is_blocked_ = false;
  }
  bool isReadable() const { return is_readable_; }
  /// What was taken is acknowledged now, instead of with what is sent next, or 40 ms later.
  void acknowledge();
  /// Ends the link in good order, where it is open: nothing may be posted any more.
  void sayBye();
  /// Closes it as it is.
  void close();

 private:
  enum class State { idle, greeting, waiting, open, closed };

  // Credits.
  std::span<std::byte> expected() override;
  bool begin(const std::byte* header, std::span<std::byte>* payload) override;
  bool end() override;
  // Slots.
  bool waiting(std::size_t k, FrameWriter::Frame* frame) override;
  void sent() override;

  std::uint64_t posted() const { return view_.posted->value.load(std::memory_order_acquire); }
  std::uint64_t released() const { return view_.released->value.load(std::memory_order_relaxed); }
  bool owesBye() const { return says_bye_ && !bye_sent_ && state_ == State::open; }
  std::span<const std::byte> dataOf(std::uint64_t sequence) const;
  std::span<std::byte> resultPlace(std::uint64_t sequence) const;
  bool hasResult(std::uint64_t sequence) const;
  void dialNow(Clock::time_point now);
  void greet(Clock::time_point now);
  void open(const Bytes& answer, Clock::time_point now);
  void lost(const std::string& problem, Clock::time_point now);
  std::string failure() const;

  const LinkContext& context_;
  LinkView view_;
  LinkPeer peer_;
  std::uint64_t token_;
  State state_ = State::idle;
  bool is_readable_ = false;
  bool has_asked_ = false;   ///< since the last acknowledge()
  bool is_blocked_ = false;  ///< the kernel takes no more
  bool bulk_ = false;
  bool says_bye_ = false;
  bool bye_sent_ = false;
  bool heard_bye_ = false;
  UniqueFd socket_;
  std::unique_ptr<SecureChannel> channel_;  ///< while greeting
  bool hello_sent_ = false;
  std::uint64_t epoch_ = 0;

  FrameReader reader_{sizeof(CreditFrame)};
  CreditFrame credit_;
  FrameWriter writer_;
  SlotHeader bye_;
  std::vector<SlotHeader> wire_headers_;  ///< of the slots in the ring, made when they are first sent
  std::uint64_t encoded_ = 0;             ///< slots whose wire header was made
  std::uint64_t sent_ = 0;                ///< slots that are with the kernel
  std::uint64_t awaited_ = 0;             ///< slots before this one are waited for by their sender

  Clock::time_point retry_at_;  ///< where is_blocked_: even without an event
  Silence silence_;
  Trouble trouble_;
  Clock::time_point dial_at_;
  Clock::time_point attempt_ends_;
  std::chrono::milliseconds backoff_{0};
  bool is_connected_ = false;   ///< of the present attempt
  bool is_refused_ = false;     ///< nothing listened at the peer's address when it was last dialed
  std::uint64_t answered_ = 0;  ///< slots that the peer had at the last handshake
  std::string problem_;         ///< why there is no connection
};

}  // namespace tutti
