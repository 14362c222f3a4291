#include "transports/tcp/receiving_link.h"

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/socket_address.h"
#include "transports/tcp/sockets.h"

namespace tutti {

using std::chrono::milliseconds;

ReceivingLink::ReceivingLink(const LinkContext& context, const LinkView& view, LinkPeer peer,
                             std::uint64_t token)
    : context_(context), view_(view), peer_(std::move(peer)), token_(token) {}

// Connections.

std::optional<Answer> ReceivingLink::fence(const Hello& hello, Clock::time_point now) {
  if (state_ == State::closed || says_bye_ || hello.epoch <= epoch_) return std::nullopt;
  if (hello.released > released() || hello.slot_count != view_.slot_count) return std::nullopt;
  epoch_ = hello.epoch;
  trouble_.begin(now);
  problem_ = "it dialed, but did not go on";
  state_ = State::lost;
  is_readable_ = false;
  socket_ = {};
  // What was sent may not have arrived.
  credited_ = hello.released;
  has_credit_ = false;
  return Answer{.posted = posted()};
}

void ReceivingLink::attach(UniqueFd socket, const Bytes& rest, std::uint64_t epoch, Clock::time_point now) {
  if (state_ != State::lost || epoch != epoch_) return;
  socket_ = std::move(socket);
  tune(socket_.get());
  if (!watch(context_.epoll, socket_.get(), token_)) {
    return lost(fmt::format("epoll_ctl: {} (errno {})", std::strerror(errno), errno));
  }
  state_ = State::open;
  is_readable_ = true;
  trouble_.opened(now);
  silence_.restart();
  reader_.restart(rest);
  writer_.restart();
  push(Credits::all);
}

void ReceivingLink::lost(const std::string& problem) {
  problem_ = problem.empty() ? "it closed the connection" : problem;
  socket_ = {};
  is_readable_ = false;
  if (context_.is_retired(peer_.rank) || says_bye_) {
    state_ = State::closed;
    return;
  }
  trouble_.begin(Clock::now());
  state_ = State::lost;
}

void ReceivingLink::tend(Clock::time_point now) {
  if (state_ == State::open) {
    // The connection is left to the sender: it may not learn that this end of it was given up.
    if (silence_.lasts(socket_.get(), now) < kSilenceOfTcp + context_.recovery) return;
    problem_ = "nothing was acknowledged";
    state_ = State::lost;
    trouble_.begin(now - context_.recovery - milliseconds(1));
  }
  if (state_ != State::lost) return;
  if (context_.is_retired(peer_.rank)) return close();
  if (!trouble_.exceeds(context_.recovery, now)) return;
  close();
  context_.fail(
      fmt::format("the connection from {} at {} is lost, and was not made again for {} ms: {}. Is it alive, "
                  "and may it reach the ports of this host (firewall, NCCL_SOCKET_IFNAME)? "
                  "TUTTI_NET_RECOVERY allows for longer interruptions",
                  peer_.name, toText(peer_.address), context_.recovery.count(), problem_));
}

void ReceivingLink::close() {
  state_ = State::closed;
  is_readable_ = false;
  socket_ = {};
}

// Slots.

bool ReceivingLink::ask() {
  is_readable_ = false;
  if (state_ != State::open) return false;
  const std::uint64_t before = posted();
  has_asked_ = true;
  const StreamStatus status = reader_.pump(context_.wire, socket_.get(), *this);
  is_readable_ = status == StreamStatus::more;
  if (heard_bye_) {
    takePad(socket_.get());
    close();
  } else if (status == StreamStatus::ended || status == StreamStatus::broken) {
    lost(reader_.problem());
  }
  return posted() != before;
}

void ReceivingLink::acknowledge() {
  if (std::exchange(has_asked_, false) && state_ == State::open) acknowledgeNow(socket_.get());
}

std::span<std::byte> ReceivingLink::expected() {
  const std::uint64_t sequence = posted();
  if (sequence - released() >= view_.slot_count) return {};
  return {view_.slot(sequence), usual_bytes_};
}

bool ReceivingLink::begin(const std::byte* header, std::span<std::byte>* payload) {
  std::memcpy(&arriving_, header, sizeof(arriving_));
  *payload = {};
  if (!isIntact(arriving_) || heard_bye_) return false;
  const std::uint64_t sequence = posted();
  if (arriving_.sequence != sequence) return false;
  if ((arriving_.from_region & kByeFrame) != 0) return arriving_.bytes == 0;
  if (sequence - released() >= view_.slot_count || arriving_.bytes > view_.slot_bytes) return false;
  if (arriving_.bytes != 0) *payload = {view_.slot(sequence), arriving_.bytes};
  return true;
}

bool ReceivingLink::end() {
  if ((arriving_.from_region & kByeFrame) != 0) {
    heard_bye_ = true;
    return true;
  }
  const std::uint64_t sequence = arriving_.sequence;
  if (context_.checksums && checksumOf({view_.slot(sequence), arriving_.bytes}) != arriving_.from) {
    context_.altered.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  view_.header(sequence) = arriving_;
  usual_bytes_ = arriving_.bytes;
  // Publishes slot and header; pairs with the acquire in await.
  view_.posted->value.store(sequence + 1, std::memory_order_release);
  trouble_.progress();
  return true;
}

// Credits.

bool ReceivingLink::hasResult(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  return header.returns != 0 && header.bytes != 0;
}

bool ReceivingLink::isDue() const {
  const std::uint64_t released = this->released();
  if (released - credited_ >= std::max<std::uint64_t>(1, view_.slot_count / 2)) return true;
  for (std::uint64_t sequence = credited_; sequence < released; ++sequence) {
    if ((view_.header(sequence).from_region & kPromptFrame) != 0) return true;
  }
  return false;
}

void ReceivingLink::push(Credits credits) {
  if (state_ != State::open || !(owesCredits() || owesBye())) return;
  if (credits == Credits::lazily && !writer_.isInside() && !isDue()) return;
  if (writer_.pump(context_.wire, socket_.get(), *this) == StreamStatus::broken) lost(writer_.problem());
}

/// Up to the next slot with a result, or all that is owed; at the end good-bye.
void ReceivingLink::makeCredit() {
  const std::uint64_t released = this->released();
  credit_ = {.released = released, .is_bye = owesCredits() ? 0U : 1U};
  for (std::uint64_t sequence = credited_; sequence < released; ++sequence) {
    if (!hasResult(sequence)) continue;
    const std::uint32_t bytes = view_.header(sequence).bytes;
    const std::uint64_t checksum = context_.checksums ? checksumOf({view_.slot(sequence), bytes}) : 0;
    credit_ = {.released = sequence + 1, .result_bytes = bytes, .checksum = checksum};
    break;
  }
  credit_ = sealed(credit_);
  has_credit_ = true;
}

bool ReceivingLink::waiting(std::size_t k, FrameWriter::Frame* frame) {
  if (k != 0 || !(owesCredits() || owesBye())) return false;
  if (!has_credit_) makeCredit();
  *frame = {.header = std::as_bytes(std::span(&credit_, 1)), .payload = {}};
  if (credit_.result_bytes != 0) frame->payload = {view_.slot(credit_.released - 1), credit_.result_bytes};
  return true;
}

void ReceivingLink::sent() {
  credited_ = credit_.released;
  bye_sent_ = credit_.is_bye != 0;
  has_credit_ = false;
}

bool ReceivingLink::isSettled() const {
  if (state_ == State::closed || state_ == State::absent) return true;
  if (state_ == State::lost && trouble_.exceeds(kFarewell, Clock::now())) return true;
  return state_ == State::open && !owesCredits() && !owesBye() && unacknowledgedBytes(socket_.get()) == 0;
}

void ReceivingLink::sayBye() {
  says_bye_ = true;
  push(Credits::all);
}

}  // namespace tutti
