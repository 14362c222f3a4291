// The receiver's end of a TCP link: slots arrive, credits and results go back on the same connection.
//
//   absent ──► open ──► closed (bye)
//               │ ▲
//               ▼ │ the sender dials again; the old connection is closed before it learns where to go on
//              lost ──► closed (it did not come back in time, or is gone)
//
// Used by the thread that drives the network, only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/core/link.h"
#include "runtime/core/unique_fd.h"
#include "transports/tcp/frame_reader.h"
#include "transports/tcp/frame_writer.h"
#include "transports/tcp/frames.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/link_context.h"
#include "transports/tcp/silence.h"

namespace tutti {

class ReceivingLink final : private FrameReader::Frames, private FrameWriter::Frames {
 public:
  enum class Credits { lazily, all };

  ReceivingLink(const LinkContext& context, const LinkView& view, LinkPeer peer, std::uint64_t token);

  const LinkView& view() const { return view_; }
  bool isOpen() const { return state_ == State::open; }
  bool isTransient() const { return state_ == State::lost; }
  bool owesCredits() const { return credited_ < released(); }
  /// Something is left to do that no event will tell of.
  bool isPending() const {
    return isTransient() || is_readable_ ||
           (isOpen() && (owesCredits() || owesBye() || silence_.isPossible()));
  }
  /// The slots are large; see SendingLink.
  bool isBulk() const { return usual_bytes_ >= FrameReader::kDirectBytes; }
  /// The peer has all credits, or will never want them.
  bool isSettled() const;

  /// The sender has dialed: ends the connection that there was and says where the link stands. Nothing where
  /// the greeting is older than another one, or the link is closed.
  std::optional<Answer> fence(const Hello& hello, Clock::time_point now);
  /// The answer to the greeting of `epoch` is on its way. Ignored where another one came after it.
  void attach(UniqueFd socket, const Bytes& rest, std::uint64_t epoch, Clock::time_point now);

  /// Takes slots, where an event has told of some.
  void receive() {
    if (is_readable_) ask();
  }
  /// Asks the socket for them, whatever events say. True if there were any.
  bool ask();
  /// Sends results, and credits where the sender waits for them or enough are owed; or all.
  void push(Credits credits);
  /// Time's limits.
  void tend(Clock::time_point now);
  /// The socket has news.
  void wake() { is_readable_ = true; }
  bool isReadable() const { return is_readable_; }
  /// What was taken is acknowledged now, instead of with what is sent next, or 40 ms later.
  void acknowledge();
  /// Ends the link in good order, where it is open.
  void sayBye();
  void close();

 private:
  enum class State { absent, open, lost, closed };

  // Slots.
  std::span<std::byte> expected() override;
  bool begin(const std::byte* header, std::span<std::byte>* payload) override;
  bool end() override;
  // Credits.
  bool waiting(std::size_t k, FrameWriter::Frame* frame) override;
  void sent() override;

  std::uint64_t posted() const { return view_.posted->value.load(std::memory_order_relaxed); }
  std::uint64_t released() const { return view_.released->value.load(std::memory_order_acquire); }
  bool owesBye() const { return says_bye_ && !bye_sent_; }
  bool isDue() const;
  bool hasResult(std::uint64_t sequence) const;
  void makeCredit();
  void lost(const std::string& problem);

  const LinkContext& context_;
  LinkView view_;
  LinkPeer peer_;
  std::uint64_t token_;
  State state_ = State::absent;
  bool is_readable_ = false;
  bool has_asked_ = false;  ///< since the last acknowledge()
  bool says_bye_ = false;
  bool bye_sent_ = false;
  UniqueFd socket_;
  std::uint64_t epoch_ = 0;

  FrameReader reader_{sizeof(SlotHeader)};
  SlotHeader arriving_;
  std::size_t usual_bytes_ = 0;  ///< of the last slot, as a guess for the next
  bool heard_bye_ = false;

  FrameWriter writer_;
  std::uint64_t credited_ = 0;  ///< slots whose credit is with the kernel
  CreditFrame credit_;          ///< the next one, while has_credit_

  bool has_credit_ = false;

  Silence silence_;
  Trouble trouble_;
  std::string problem_;  ///< why there is no connection
};

}  // namespace tutti
