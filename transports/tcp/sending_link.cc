#include "transports/tcp/sending_link.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/listener.h"
#include "transports/socket_address.h"
#include "transports/tcp/handshake.h"
#include "transports/tcp/sockets.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{5};
constexpr milliseconds kLongestBackoff{500};
/// After the kernel took no more: its event comes earlier, where there is one.
constexpr std::chrono::microseconds kRetry{20};
/// For a connection to be made and answered. A host that does not answer at all costs as much.
constexpr milliseconds kAttempt{5000};

}  // namespace

bool watch(int epoll, int socket, std::uint64_t token) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = token;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0 ||
         (errno == EEXIST && ::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) == 0);
}

SendingLink::SendingLink(const LinkContext& context, const LinkView& view, LinkPeer peer, std::uint64_t token)
    : context_(context), view_(view), peer_(std::move(peer)), token_(token) {}

// Making a connection.

void SendingLink::dialNow(Clock::time_point now) {
  hello_sent_ = false;
  attempt_ends_ = now + kAttempt;
  is_connected_ = is_refused_ = false;
  int error = 0;
  UniqueFd socket = startConnect(peer_.address, &error);
  if (error == EMFILE || error == ENFILE) {
    // No matter of the peer's, and not one that time heals.
    close();
    return context_.fail(
        fmt::format("rank {} itself cannot open a connection to {}: {}. Raise its limit of open files "
                    "(ulimit -n): one descriptor is needed for each rank on another host that it sends "
                    "to or receives from, and about 30 besides",
                    context_.rank, peer_.name, std::strerror(error)));
  }
  if (error != 0) return lost(fmt::format("{} (errno {})", std::strerror(error), error), now);
  tune(socket.get());
  if (!watch(context_.epoll, socket.get(), token_)) {
    return lost(fmt::format("epoll_ctl: {} (errno {})", std::strerror(errno), errno), now);
  }
  state_ = State::greeting;
  ++epoch_;
  channel_ = std::make_unique<SecureChannel>(std::move(socket), context_.secret, SecureChannel::Role::client);
}

void SendingLink::tend(Clock::time_point now) {
  if (state_ == State::open && silence_.lasts(socket_.get(), now) >= kSilenceOfTcp) {
    lost(fmt::format("nothing was acknowledged for {} ms", kSilenceOfTcp.count()), now);
  }
  if (!isTransient()) return;
  if (context_.is_retired(peer_.rank)) return close();
  if (state_ == State::waiting && now >= dial_at_) dialNow(now);
  if (state_ == State::greeting) greet(now);
  if (state_ == State::greeting && now >= attempt_ends_) lost("it does not answer", now);
  if (isTransient() && trouble_.exceeds(context_.recovery, now)) {
    close();
    context_.fail(failure());
  }
}

void SendingLink::greet(Clock::time_point now) {
  if (!is_connected_) {
    const int error = connectResult(channel_->fd());
    if (error == EINPROGRESS) return;
    is_refused_ = error == ECONNREFUSED;
    if (error != 0) return lost(fmt::format("{} (errno {})", std::strerror(error), error), now);
    is_connected_ = true;
  }
  const bool is_usable = channel_->pump();
  if (is_usable && channel_->established() && !hello_sent_) {
    hello_sent_ = true;
    channel_->send(toBytes(Hello{.from = context_.rank,
                                 .to = peer_.rank,
                                 .lane = peer_.lane,
                                 .slot_count = view_.slot_count,
                                 .epoch = epoch_,
                                 .released = released()}));
    if (!channel_->pump()) return lost(channel_->problem(), now);
  }
  if (hello_sent_) {
    if (const auto answer = channel_->receive()) return open(*answer, now);
  }
  if (!is_usable) lost(channel_->problem(), now);
}

/// The peer has said where it is: goes on from there.
void SendingLink::open(const Bytes& bytes, Clock::time_point now) {
  const auto answer = fromBytes<Answer>(bytes);
  if (!answer || answer->posted < released() || answer->posted > encoded_) {
    return lost("its answer makes no sense", now);
  }
  if (channel_->wantsToWrite()) return lost("it answered before it was asked", now);
  Bytes rest;
  socket_ = channel_->takeSocket(&rest);
  channel_.reset();
  state_ = State::open;
  is_readable_ = true;
  if (epoch_ > 1 && !problem_.empty() && context_.note) {
    context_.note(fmt::format(
        "the connection to {} at {} was lost ({}) and is made again; nothing was lost or delivered "
        "twice",
        peer_.name, toText(peer_.address), problem_));
  }
  if (answer->posted > answered_) trouble_.progress();
  trouble_.opened(now);
  answered_ = answer->posted;
  sent_ = answer->posted;
  is_blocked_ = false;
  silence_.restart();
  writer_.restart();
  reader_.restart(rest);
  push();
}

void SendingLink::lost(const std::string& problem, Clock::time_point now) {
  // The peer may have closed for a reason that only it knows.
  problem_ = problem.empty() ? "it closed the connection" : problem;
  channel_.reset();
  socket_ = {};
  is_readable_ = false;
  if (context_.is_retired(peer_.rank) || says_bye_) {
    state_ = State::closed;
    return;
  }
  trouble_.begin(now);
  state_ = State::waiting;
  dial_at_ = now + backoff_;
  backoff_ = std::clamp(2 * backoff_, kFirstBackoff, kLongestBackoff);
}

void SendingLink::close() {
  state_ = State::closed;
  is_readable_ = false;
  channel_.reset();
  socket_ = {};
}

std::string SendingLink::failure() const {
  return fmt::format(
      "no connection to {} at {} for {} ms: {}. Is it alive, and may this host reach that port (firewall, "
      "NCCL_SOCKET_IFNAME)? TUTTI_NET_RECOVERY allows for longer interruptions",
      peer_.name, toText(peer_.address), context_.recovery.count(), problem_);
}

// Slots.

void SendingLink::push() {
  if (!hasUnsent()) return;
  if (state_ == State::idle && !context_.is_retired(peer_.rank)) {
    const auto now = Clock::now();
    trouble_.begin(now);
    dialNow(now);
    tend(now);
  }
  if (state_ != State::open || (is_blocked_ && Clock::now() < retry_at_)) return;
  const StreamStatus status = writer_.pump(context_.wire, socket_.get(), *this);
  is_blocked_ = status == StreamStatus::blocked;
  if (is_blocked_) retry_at_ = Clock::now() + kRetry;
  if (status == StreamStatus::broken) lost(writer_.problem(), Clock::now());
}

std::span<const std::byte> SendingLink::dataOf(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  if (header.kind == SlotKind::inline_data) return {view_.slot(sequence), header.bytes};
  return {std::bit_cast<const std::byte*>(header.from), header.bytes};
}

bool SendingLink::waiting(std::size_t k, FrameWriter::Frame* frame) {
  const std::uint64_t sequence = sent_ + k;
  if (sequence >= posted()) {
    *frame = {.header = std::as_bytes(std::span(&bye_, 1)), .payload = {}};
    return owesBye() && sequence == posted();
  }
  if (wire_headers_.empty()) wire_headers_.resize(view_.slot_count);
  SlotHeader& wire = wire_headers_[sequence % view_.slot_count];
  const std::span<const std::byte> data = dataOf(sequence);
  if (sequence == encoded_) {
    wire = toWire(view_.header(sequence), data, context_.checksums);
    if ((wire.from_region & kPromptFrame) != 0) awaited_ = sequence + 1;
    bulk_ = data.size() >= FrameReader::kDirectBytes;
    ++encoded_;
  }
  *frame = {std::as_bytes(std::span(&wire, 1)), data};
  return true;
}

void SendingLink::sent() {
  if (sent_ < posted()) {
    ++sent_;
  } else {
    bye_sent_ = true;
  }
}

bool SendingLink::isSettled() const {
  if (state_ == State::closed || (state_ == State::idle && !hasUnsent())) return true;
  if (state_ == State::idle && context_.is_retired(peer_.rank)) return true;
  // Nobody listens there any more: the peer has left or died.
  if (state_ != State::open && is_refused_ && trouble_.exceeds(kFarewell, Clock::now())) return true;
  return state_ == State::open && !hasUnsent() && unacknowledgedBytes(socket_.get()) == 0;
}

void SendingLink::sayBye() {
  says_bye_ = true;
  bye_ = byeToWire(posted());
  push();
}

// Credits.

void SendingLink::ask() {
  is_readable_ = false;
  if (state_ != State::open) return;
  has_asked_ = true;
  const StreamStatus status = reader_.pump(context_.wire, socket_.get(), *this);
  is_readable_ = status == StreamStatus::more;
  if (heard_bye_) {
    takePad(socket_.get());
    close();
  } else if (status == StreamStatus::ended || status == StreamStatus::broken) {
    lost(reader_.problem(), Clock::now());
  }
}

void SendingLink::acknowledge() {
  if (std::exchange(has_asked_, false) && state_ == State::open) acknowledgeNow(socket_.get());
}

bool SendingLink::hasResult(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  return header.returns != 0 && header.bytes != 0;
}

std::span<std::byte> SendingLink::resultPlace(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  if (header.kind == SlotKind::inline_data) return {view_.slot(sequence), header.bytes};
  return {std::bit_cast<std::byte*>(header.to), header.bytes};
}

std::span<std::byte> SendingLink::expected() {
  const std::uint64_t next = released();
  // Where the next slot has a result, nothing else can come before it.
  return next < sent_ && hasResult(next) ? resultPlace(next) : std::span<std::byte>{};
}

bool SendingLink::begin(const std::byte* header, std::span<std::byte>* payload) {
  std::memcpy(&credit_, header, sizeof(credit_));
  *payload = {};
  if (!isIntact(credit_) || heard_bye_) return false;
  if (credit_.is_bye != 0) return credit_.result_bytes == 0;
  if (credit_.released <= released() || credit_.released > sent_) return false;
  const std::uint64_t last = credit_.released - 1;
  // A result must not be passed over: it comes in a frame of its own.
  for (std::uint64_t sequence = released(); sequence < last; ++sequence) {
    if (hasResult(sequence)) return false;
  }
  if (credit_.result_bytes != (hasResult(last) ? view_.header(last).bytes : 0)) return false;
  if (credit_.result_bytes != 0) *payload = resultPlace(last);
  return true;
}

bool SendingLink::end() {
  if (credit_.is_bye != 0) {
    heard_bye_ = true;
    return true;
  }
  if (credit_.result_bytes != 0 && context_.checksums) {
    if (checksumOf(resultPlace(credit_.released - 1)) != credit_.checksum) {
      context_.altered.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
  }
  // The result is where it belongs; pairs with the acquire in reserve and drain.
  view_.released->value.store(credit_.released, std::memory_order_release);
  trouble_.progress();
  backoff_ = milliseconds(0);
  return true;
}

}  // namespace tutti
