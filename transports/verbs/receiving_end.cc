#include "transports/verbs/receiving_end.h"

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

/// For a read back of GPU memory, which takes microseconds where the port is good for anything.
constexpr std::chrono::milliseconds kLastLook{10};

}  // namespace

ReceivingEnd::ReceivingEnd(const VerbsContext& context, const LinkView& view, std::span<std::byte> own,
                           VerbsLinkPeer peer)
    : context_(context), view_(view), own_(own), peer_(std::move(peer)) {}

// Connecting.

/// The port of this host, and the pair of addresses, by which the sender's port is reached best.
ReceivingEnd::Path ReceivingEnd::choosePath(const HelloLetter& hello) const {
  const std::span theirs(hello.gids.data(), std::min<std::size_t>(hello.gid_count, kMostGids));
  Path best;
  const std::size_t count = context_.ports.size();
  const std::size_t first = context_.first_port(peer_.rank, peer_.lane, false) + hello.turn;
  for (std::size_t i = 0; i < count; ++i) {
    const VerbsPort& port = context_.ports[(first + i) % count];
    if (port.is_ethernet != (hello.is_ethernet != 0) || !port.isUsable()) continue;
    auto gids = chooseGids(port.gids, theirs);
    if (!gids || (best.port != nullptr && gids->common_bits <= best.gids.common_bits)) continue;
    best = {&port, *std::move(gids)};
  }
  return best;
}

void ReceivingEnd::hear(const HelloLetter& hello) {
  if (state_ == State::closed || hello.head.epoch <= epoch_) return;
  const std::string problem = problemOf(hello, view_);
  if (!problem.empty()) return refuse(hello.head.epoch, "the greeting is refused: " + problem);
  // Nothing of the old connection arrives after this.
  drop();
  epoch_ = hello.head.epoch;
  state_ = State::lost;
  hello_ = hello;
  outage_.begin(VerbsClock::now());
  Path path = choosePath(hello);
  if (path.port == nullptr) {
    return refuse(epoch_,
                  fmt::format("no port of the receiver that is up has an address that goes with one of {} "
                              "(NCCL_IB_HCA, NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE)",
                              textOf(hello.port)));
  }
  try {
    connect(std::move(path));
  } catch (const Error& error) {
    drop();
    problem_ = error.what();
    refuse(epoch_, problem_);
  }
}

void ReceivingEnd::connect(Path path) {
  const std::uint32_t count = hello_.queue_pairs;
  const std::uint32_t per_pair = slotsPerPair(view_.slot_count, count);
  // A credit and a result for each slot may be under way, all on the first pair.
  const QueueDepth depth{.sends = 4 * view_.slot_count, .receives = per_pair};
  memory_ = std::make_unique<RegisteredMemory>(path.port->device, own_);
  slots_ = slotKeys(context_, *path.port->device, *memory_);
  slots_in_.restart(readBackOf(context_, *path.port), posted());
  spoiled_ =
      std::make_unique<SpoiledCopies>(context_.faults, path.port->device, view_.slot_count, view_.slot_bytes);
  pairs_ = std::make_shared<QueuePairs>(*path.port, count, depth, context_.settings);
  for (std::uint32_t pair = 0; pair < count; ++pair) {
    for (std::uint32_t i = 0; i < per_pair; ++i) {
      if (!pairs_->postReceive(pair))
        throw Error(ncclSystemError, path.port->name() + ": it takes no receives");
    }
  }
  queue_.restart(count, depth.sends);
  gids_ = std::move(path.gids);
  QueuePairAddress theirs = hello_.address;
  theirs.gid = gids_.theirs;
  state_ = State::connecting;
  connecting_.emplace(context_.connecting, pairs_, gids_.mine, theirs, context_.settings);
}

void ReceivingEnd::tendConnecting(VerbsClock::time_point now) {
  const auto problem = connecting_->result();
  if (!problem) return;
  connecting_.reset();
  if (problem->empty()) return answer();
  drop();
  state_ = State::lost;
  problem_ = *problem;
  outage_.begin(now);
  refuse(epoch_, problem_);
}

void ReceivingEnd::answer() {
  const std::string port = pairs_->port().name();
  arrived_.assign(view_.slot_count, false);
  first_here_ = posted();
  credited_ = hello_.released;  // what was sent may not have arrived
  path_ = fmt::format("from {} {} to {} {} ({})", textOf(hello_.port), toText(gids_.theirs), port,
                      toText(gids_.mine), gids_.why);
  state_ = State::open;
  outage_.opened(VerbsClock::now());
  AnswerLetter answer{.head = {LetterKind::answer, peer_.lane, epoch_, 0}, .posted = posted()};
  answer.senders_gid = gids_.theirs;
  answer.address = pairs_->address(gids_.mine);
  answer.slots_at = std::bit_cast<std::uint64_t>(view_.data);
  answer.headers_at = std::bit_cast<std::uint64_t>(view_.headers);
  answer.slots_key = slots_.remote;
  answer.headers_key = memory_->remoteKey();
  answer.slots_in_gpu = context_.gpu_slots != nullptr ? 1 : 0;
  setText(answer.text, port);
  context_.tell(peer_.rank, toLetter(answer));
  if (context_.tell_path)
    context_.tell_path(fmt::format("RDMA with {}, lane {}: {}", peer_.name, peer_.lane, path_));
}

void ReceivingEnd::refuse(std::uint64_t epoch, const std::string& why) {
  AnswerLetter answer{.head = {LetterKind::answer, peer_.lane, epoch, 0}, .is_refused = 1};
  setText(answer.text, why);
  context_.tell(peer_.rank, toLetter(answer));
}

/// The letter may overtake the last completions, though not by much: the sender had all its acknowledgements.
void ReceivingEnd::hear(const ByeLetter& bye) {
  if (bye.head.epoch != epoch_ || state_ == State::closed) return;
  end_ = bye.posted;
  end_by_ = VerbsClock::now() + kSilence;
  receive();
  if (hasEnded()) close();
}

void ReceivingEnd::lost(const std::string& problem, VerbsClock::time_point now) {
  problem_ = path_.empty() ? problem : fmt::format("{}: {}", path_, problem);
  drop();
  if (context_.is_retired(peer_.rank) || hasEnded()) {
    state_ = State::closed;
    return;
  }
  state_ = State::lost;
  outage_.begin(now);
  BrokenLetter broken{.head = {LetterKind::broken, peer_.lane, epoch_, 0}};
  setText(broken.text, problem);
  context_.tell(peer_.rank, toLetter(broken));
}

void ReceivingEnd::hear(const VerbsEvent& event) {
  if (pairs_ != nullptr && event.ends(*pairs_)) lost(event.text, VerbsClock::now());
}

void ReceivingEnd::tend(VerbsClock::time_point now) {
  if (state_ == State::closed || state_ == State::absent) return;
  if (hasEnded()) return close();
  if (context_.is_retired(peer_.rank)) {
    if (isTransient()) close();
    return;
  }
  if (end_ && now > end_by_) {
    close();
    return context_.fail(
        fmt::format("{} said good-bye on RDMA lane {} after {} slots, of which only {} came{}{}", peer_.name,
                    peer_.lane, *end_, posted(), problem_.empty() ? "" : ": ", problem_));
  }
  if (state_ == State::connecting) tendConnecting(now);
  if (state_ == State::open) {
    if (queue_.isSilentFor(kSilence, now)) return lost(explainSilence(kSilence), now);
    if (!slots_in_.problem().empty()) lost(slots_in_.problem(), now);
    return;
  }
  if (!outage_.exceeds(context_.recovery + kReceiverGrace, now)) return;
  close();
  context_.fail(
      fmt::format("the RDMA connection from {} is lost, and was not made again for {} ms (TUTTI_NET_RECOVERY "
                  "allows for longer interruptions): {}",
                  peer_.name, context_.recovery.count(), problem_));
}

void ReceivingEnd::drop() {
  if (state_ == State::open) salvage();
  slots_in_.stop();
  connecting_.reset();
  pairs_.reset();
  spoiled_.reset();
  memory_.reset();
}

void ReceivingEnd::close() {
  state_ = State::closed;
  drop();
}

// Slots.

bool ReceivingEnd::receive() {
  if (state_ != State::open) return false;
  std::array<ibv_wc, 16> room;
  std::optional<ibv_wc_status> failure;
  const std::uint64_t before = posted();
  auto some = pairs_->poll(room);
  // A wait asks often: the clock is read when something came.
  const auto now = some.empty() ? VerbsClock::time_point() : VerbsClock::now();
  for (; !some.empty(); some = pairs_->poll(room)) {
    for (const ibv_wc& completion : some) {
      if (completion.status != IBV_WC_SUCCESS) {
        failure = causeOf(failure, completion.status);
      } else if (!take(completion, now)) {
        return posted() != before;
      }
    }
  }
  if (failure) {
    lost(explain(*failure), now);
  } else if (slots_in_.isPending()) {
    publish();
  }
  return posted() != before;
}

/// False if the connection was given up.
bool ReceivingEnd::take(const ibv_wc& completion, VerbsClock::time_point now) {
  outage_.end();
  if ((completion.opcode & IBV_WC_RECV) == 0) {
    queue_.completed(completion.wr_id, now);
    return true;
  }
  const auto place = arrive(ntohl(completion.imm_data));
  if (!place) {
    lost("a slot was written that was not free", now);
  } else if (!pairs_->postReceive(static_cast<std::uint32_t>(*place % hello_.queue_pairs))) {
    lost("the receive queue takes no more", now);
  } else {
    publish();
  }
  return state_ == State::open;
}

/// A connection is given up: what has come by it whole, and was acknowledged to the sender, counts; the
/// sender may have ended since. But not what a GPU might not see.
void ReceivingEnd::salvage() {
  std::array<ibv_wc, 16> completions;
  state_ = State::lost;
  for (std::span some = pairs_->poll(completions); !some.empty(); some = pairs_->poll(completions)) {
    for (const ibv_wc& completion : some) {
      const bool is_slot = completion.status == IBV_WC_SUCCESS && (completion.opcode & IBV_WC_RECV) != 0;
      if (is_slot) arrive(ntohl(completion.imm_data));
    }
  }
  publish();
  for (const auto end = VerbsClock::now() + kLastLook; slots_in_.isPending() && VerbsClock::now() < end;) {
    publish();
  }
}

/// A slot of which the lower bits of the number are known was written whole. Returns its place; nothing where
/// it is none of those that are to come: it came before, or is not the sender's yet.
std::optional<std::uint64_t> ReceivingEnd::arrive(std::uint32_t low) {
  const std::uint64_t next = slots_in_.arrived();
  const std::uint64_t sequence = next + ((low - static_cast<std::uint32_t>(next)) & (kTogether - 1));
  if (sequence >= released() + view_.slot_count) return std::nullopt;
  const std::uint64_t place = sequence % view_.slot_count;
  if (arrived_[place]) return std::nullopt;
  const bool is_together = (low & kTogether) != 0;
  if (is_together && context_.gpu_slots != nullptr) return std::nullopt;
  // publish() sees whether it makes sense.
  if (is_together)
    std::memcpy(&view_.header(sequence), view_.slot(sequence) - kHeaderRoom, sizeof(SlotHeader));
  arrived_[place] = true;
  return place;
}

/// In order, whichever queue pair they came on.
void ReceivingEnd::publish() {
  std::uint64_t sequence = slots_in_.arrived();
  bool is_altered = false;
  for (; arrived_[sequence % view_.slot_count]; ++sequence) {
    arrived_[sequence % view_.slot_count] = false;
    const SlotHeader& header = view_.header(sequence);
    const bool fits = header.sequence == sequence && header.bytes <= view_.slot_bytes - kHeaderRoom;
    is_altered = !fits || !isIntactWire(header, {view_.slot(sequence), header.bytes}, context_.checksums);
    if (is_altered) break;
  }
  slots_in_.arrive(sequence);
  // Publishes slots and headers, which the device wrote before its completions; pairs with the acquire in
  // await.
  view_.posted->value.store(slots_in_.visible(), std::memory_order_release);
  if (!is_altered || state_ != State::open) return;
  lost(alterations_.add("slot", sequence, context_.altered), VerbsClock::now());
  if (!alterations_.isHopeless()) return;
  close();
  context_.fail(alterations_.failure(peer_.name));
}

void ReceivingEnd::arm() {
  if (pairs_ != nullptr && state_ == State::open) pairs_->arm();
}

bool ReceivingEnd::isSettled() const {
  if (state_ == State::closed || state_ == State::absent) return true;
  return state_ == State::open && !owesCredits() && !queue_.isBusy();
}

}  // namespace tutti
