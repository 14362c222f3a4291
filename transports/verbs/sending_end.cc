#include "transports/verbs/sending_end.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

/// For an answer, which comes by way of Watchers.
constexpr milliseconds kAnswerWithin{3000};
constexpr milliseconds kConnectedWithin{3000};
constexpr milliseconds kFirstBackoff{20};
constexpr milliseconds kLongestBackoff{500};
constexpr std::uint32_t kRequestsPerSlot = 2;

}  // namespace

SendingEnd::SendingEnd(const VerbsContext& context, const LinkView& view, std::span<std::byte> own,
                       VerbsLinkPeer peer)
    : context_(context), view_(view), own_(own), peer_(std::move(peer)) {}

/// Each attempt takes the next port that is usable.
const VerbsPort& SendingEnd::port() const {
  const std::size_t count = context_.ports.size();
  const std::size_t first = context_.first_port(peer_.rank, peer_.lane, true) + outage_.attempts();
  for (std::size_t i = 0; i < count; ++i) {
    const VerbsPort& port = context_.ports[(first + i) % count];
    if (port.isUsable()) return port;
  }
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is always one
  return context_.ports[first % count];
}

// Connecting.

void SendingEnd::greet(VerbsClock::time_point now) {
  path_.clear();  // what happens from here on is not about the old one
  const VerbsPort& port = this->port();
  const std::string why_not = port.whyNot();
  if (!why_not.empty()) return lost(why_not, now);
  const std::uint32_t count = context_.settings.queue_pairs;
  const std::uint32_t depth = 2 * kRequestsPerSlot * slotsPerPair(view_.slot_count, count);
  try {
    memory_ = std::make_unique<RegisteredMemory>(port.device, own_);
    slots_ = slotKeys(context_, *port.device, *memory_);
    credits_.restart(readBackOf(context_, port), released());
    spoiled_ =
        std::make_unique<SpoiledCopies>(context_.faults, port.device, view_.slot_count, view_.slot_bytes);
    pairs_ = std::make_shared<QueuePairs>(
        port, count, QueueDepth{.sends = depth, .receives = view_.slot_count}, context_.settings);
    for (std::uint32_t i = 0; i < view_.slot_count; ++i) {
      if (!pairs_->postReceive(0)) throw Error(ncclSystemError, port.name() + ": it takes no receives");
    }
  } catch (const Error& error) {
    // Another port may do, or this one when it is back.
    if (context_.ports.size() == 1 && !outage_.isOn()) {
      close();
      return context_.fail(fmt::format("cannot connect to {} by RDMA: {}", peer_.name, error.what()));
    }
    return lost(error.what(), now);
  }
  queue_.restart(count, depth);
  ++epoch_;
  HelloLetter hello{.head = {LetterKind::hello, peer_.lane, epoch_, 1}};
  hello.released = released();
  hello.slot_count = view_.slot_count;
  hello.slot_bytes = view_.slot_bytes;
  hello.queue_pairs = count;
  hello.gid_count = static_cast<std::uint32_t>(std::min(port.gids.size(), kMostGids));
  std::copy_n(port.gids.begin(), hello.gid_count, hello.gids.begin());
  hello.address = pairs_->address({});
  hello.slots_at = std::bit_cast<std::uint64_t>(view_.data);
  hello.headers_at = std::bit_cast<std::uint64_t>(view_.headers);
  hello.slots_key = slots_.remote;
  hello.headers_key = memory_->remoteKey();
  hello.is_ethernet = port.is_ethernet ? 1 : 0;
  // All pairs of ports are tried in the end.
  const auto ports = static_cast<std::uint32_t>(context_.ports.size());
  hello.turn = outage_.attempts() + outage_.attempts() / ports;
  setText(hello.port, port.name());
  state_ = State::greeting;
  next_step_ = now + kAnswerWithin;
  context_.tell(peer_.rank, toLetter(hello));
}

void SendingEnd::hear(const AnswerLetter& answer) {
  if (state_ != State::greeting || answer.head.epoch != epoch_) return;
  const auto now = VerbsClock::now();
  if (answer.is_refused != 0) return lost(std::string(textOf(answer.text)), now);
  const std::string problem = problemOf(answer, view_, context_.settings.queue_pairs, pairs_->port().gids);
  if (!problem.empty()) return lost("its answer is refused: " + problem, now);
  answer_ = answer;
  state_ = State::connecting;
  next_step_ = now + kConnectedWithin;
  connecting_.emplace(context_.connecting, pairs_, answer.senders_gid, answer.address, context_.settings);
}

void SendingEnd::tendConnecting(VerbsClock::time_point now) {
  const auto problem = connecting_->result();
  if (!problem) return;
  connecting_.reset();
  if (!problem->empty()) return lost(*problem, now);
  open(now);
}

void SendingEnd::open(VerbsClock::time_point now) {
  path_ = fmt::format("from {} {} to {} {}", pairs_->port().name(), toText(answer_.senders_gid),
                      textOf(answer_.text), toText(answer_.address.gid));
  // The hosts write and read headers in front of the data: not in GPU memory.
  const bool is_host = context_.gpu_slots == nullptr && answer_.slots_in_gpu == 0;
  remote_ = {answer_.slots_at, answer_.headers_at, answer_.slots_key, answer_.headers_key, is_host};
  lent_.assign(view_.slot_count, {});
  sent_ = answer_.posted;
  state_ = State::open;
  outage_.opened(now);
  push();
}

void SendingEnd::tend(VerbsClock::time_point now) {
  if (state_ == State::closed || state_ == State::idle) return;
  if (context_.is_retired(peer_.rank)) return close();
  if (state_ == State::open) {
    const milliseconds limit = outage_.isOn() ? kSilenceAgain : kSilence;
    if (queue_.isSilentFor(limit, now)) return lost(explainSilence(limit), now);
    if (!credits_.problem().empty()) lost(credits_.problem(), now);
    return;
  }
  if (state_ == State::connecting) tendConnecting(now);
  if (!isTransient()) return;
  if (outage_.exceeds(context_.recovery, now)) {
    close();
    return context_.fail(failure());
  }
  if (now < next_step_) return;
  if (state_ == State::waiting) return greet(now);
  lost(state_ == State::greeting ? "it does not answer. Are the ports of both hosts up, and the cables in?"
                                 : "the peer's hardware address is not found",
       now);
}

void SendingEnd::drop() {
  connecting_.reset();
  credits_.stop();
  pairs_.reset();
  spoiled_.reset();
  memory_.reset();
  lent_.clear();
}

void SendingEnd::lost(const std::string& problem, VerbsClock::time_point now) {
  problem_ = path_.empty() ? problem : fmt::format("{}: {}", path_, problem);
  drop();
  if (context_.is_retired(peer_.rank)) {
    state_ = State::closed;
    return;
  }
  outage_.begin(now);
  state_ = State::waiting;
  // At once the first time; then less and less often.
  const unsigned doublings = std::min(outage_.attempts() - 1, 8U);
  next_step_ =
      now + (doublings == 0 ? milliseconds(0) : std::min(kFirstBackoff * (1 << doublings), kLongestBackoff));
}

void SendingEnd::hear(const BrokenLetter& broken) {
  if (broken.head.epoch != epoch_ || pairs_ == nullptr) return;
  lost(std::string(textOf(broken.text)), VerbsClock::now());
}

void SendingEnd::hear(const VerbsEvent& event) {
  if (pairs_ != nullptr && event.ends(*pairs_)) return lost(event.text, VerbsClock::now());
  const bool may_help = event.effect == EventEffect::port_back || event.effect == EventEffect::port_changed;
  if (may_help && state_ == State::waiting) next_step_ = VerbsClock::now();
}

void SendingEnd::close() {
  state_ = State::closed;
  drop();
}

std::string SendingEnd::failure() const {
  return fmt::format(
      "no RDMA connection to {} for {} ms (TUTTI_NET_RECOVERY allows for longer interruptions, "
      "NCCL_NET=Socket "
      "uses TCP): {}",
      peer_.name, context_.recovery.count(), problem_);
}

// Acknowledgements and credits.

bool SendingEnd::receive() {
  if (state_ != State::open) return false;
  std::array<ibv_wc, 16> room;
  std::optional<ibv_wc_status> failure;
  bool has_any = false;
  auto some = pairs_->poll(room);
  // A wait asks often: the clock is read when something came.
  const auto now = some.empty() ? VerbsClock::time_point() : VerbsClock::now();
  for (; !some.empty(); some = pairs_->poll(room)) {
    has_any = true;
    for (const ibv_wc& completion : some) {
      if (completion.status != IBV_WC_SUCCESS) {
        failure = causeOf(failure, completion.status);
      } else if (!take(completion, now)) {
        return true;
      }
    }
  }
  if (failure) {
    lost(explain(*failure), now);
  } else if (credits_.isPending()) {
    publishCredits();
  }
  return has_any;
}

/// False if the connection was given up.
bool SendingEnd::take(const ibv_wc& completion, VerbsClock::time_point now) {
  if (outage_.isOn() && context_.note) {
    context_.note(fmt::format("RDMA to {} broke ({}) and goes on {}; nothing is lost or delivered twice",
                              peer_.name, problem_, path_));
  }
  outage_.end();
  std::string problem;
  if ((completion.opcode & IBV_WC_RECV) == 0) {
    queue_.completed(completion.wr_id, now);
  } else if (!pairs_->postReceive(0)) {
    problem = "the receive queue takes no more";
  } else {
    problem = takeCredit(ntohl(completion.imm_data));
  }
  if (problem.empty()) return true;
  lost(problem, now);
  if (alterations_.isHopeless()) {
    close();
    context_.fail(alterations_.failure(peer_.name));
  }
  return false;
}

/// `low`: the lower half of the count of released slots. Returns what is wrong, or nothing.
std::string SendingEnd::takeCredit(std::uint32_t low) {
  const std::uint64_t before = credits_.arrived();
  const std::uint64_t after = before + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(before));
  if (after > sent_) return "a credit makes no sense";
  std::uint64_t home = before;
  bool has_results = false;
  for (; home < after && bringHome(home); ++home) {
    has_results = has_results || view_.header(home).returns != 0;
    lent_[home % view_.slot_count] = {};
  }
  credits_.arrive(home, has_results);
  publishCredits();
  return home == after ? "" : alterations_.add("the result of slot", home, context_.altered);
}

void SendingEnd::publishCredits() {
  // Results are where they belong; pairs with the acquire in reserve and drain.
  view_.released->value.store(credits_.visible(), std::memory_order_release);
}

/// A result came into the slot, or to where the user wants it. False where it is not what the receiver sent.
bool SendingEnd::bringHome(std::uint64_t sequence) {
  const SlotHeader& header = view_.header(sequence);
  if (header.returns == 0 || header.bytes == 0) return true;
  const bool is_in_place = lent_[sequence % view_.slot_count].to != nullptr;
  auto* const users = std::bit_cast<std::byte*>(header.to);
  const std::span<const std::byte> result(is_in_place ? users : view_.slot(sequence), header.bytes);
  if (context_.checksums && header.from != resultChecksum(sequence, result)) return false;
  if (header.kind != SlotKind::inline_data && !is_in_place) std::memcpy(users, result.data(), result.size());
  return true;
}

void SendingEnd::arm() {
  if (pairs_ != nullptr && state_ == State::open) pairs_->arm();
}

bool SendingEnd::isSettled() const {
  if (state_ == State::closed) return true;
  if (state_ == State::idle) return !hasUnsent() || context_.is_retired(peer_.rank);
  return state_ == State::open && !hasUnsent() && !queue_.isBusy();
}

void SendingEnd::sayBye() {
  if (state_ == State::idle) return;
  ByeLetter bye{.head = {LetterKind::bye, peer_.lane, epoch_, 1}, .posted = posted()};
  context_.tell(peer_.rank, toLetter(bye));
  close();
}

}  // namespace tutti
