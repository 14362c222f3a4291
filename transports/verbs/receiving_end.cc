#include "transports/verbs/receiving_end.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "transports/verbs/wire_header.h"
#include "tutti/error.h"

namespace tutti {

ReceivingEnd::ReceivingEnd(const VerbsContext& context, const LinkView& view, std::span<std::byte> own,
                           VerbsLinkPeer peer)
    : context_(context), view_(view), own_(own), peer_(std::move(peer)) {}

// Connecting.

/// The port of this host, and the pair of addresses, by which the sender's port is reached best.
ReceivingEnd::Path ReceivingEnd::choosePath(const HelloLetter& hello) const {
  const RdmaSettings& settings = context_.settings;
  GidRules rules{.range = settings.address_range};
  if (settings.gid_index >= 0) rules.index = static_cast<std::uint16_t>(settings.gid_index);
  if (settings.address_family == "AF_INET") rules.family = GidRules::Family::ipv4;
  if (settings.address_family == "AF_INET6") rules.family = GidRules::Family::ipv6;
  const std::span theirs(hello.gids.data(), std::min<std::size_t>(hello.gid_count, kMostGids));
  Path best;
  for (const VerbsPort& port : context_.ports) {
    if (port.is_ethernet != (hello.is_ethernet != 0) || !port.isActive()) continue;
    auto gids = chooseGids(port.gids, theirs, rules);
    if (!gids || (best.port != nullptr && gids->common_bits <= best.gids.common_bits)) continue;
    best = {&port, *std::move(gids)};
  }
  return best;
}

void ReceivingEnd::hear(const HelloLetter& hello) {
  if (state_ == State::closed || hello.head.epoch <= epoch_) return;
  const bool makes_sense = hello.released <= released() && hello.slot_count == view_.slot_count &&
                           hello.slot_bytes == view_.slot_bytes && hello.queue_pairs >= 1 &&
                           hello.queue_pairs <= kMostQueuePairs;
  if (!makes_sense) return refuse(hello, "the greeting makes no sense");
  // Nothing of the old connection arrives after this.
  drop();
  epoch_ = hello.head.epoch;
  state_ = State::lost;
  outage_.begin(VerbsClock::now());
  const Path path = choosePath(hello);
  if (path.port == nullptr) {
    return refuse(hello,
                  fmt::format("no port of this host has an address that goes with one of {} (NCCL_IB_HCA, "
                              "NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE)",
                              textOf(hello.port)));
  }
  try {
    answer(hello, path);
  } catch (const Error& error) {
    drop();
    refuse(hello, error.what());
  }
}

void ReceivingEnd::answer(const HelloLetter& hello, const Path& path) {
  pair_count_ = hello.queue_pairs;
  const std::uint32_t per_pair = slotsPerPair(view_.slot_count, pair_count_);
  // A credit and a result for each slot may be under way, all on the first pair.
  const QueueDepth depth{.sends = 4 * view_.slot_count, .receives = per_pair};
  memory_ = std::make_unique<RegisteredMemory>(path.port->device, own_);
  pairs_ = std::make_unique<QueuePairs>(*path.port, pair_count_, depth);
  queue_.restart(pair_count_, depth.sends);
  QueuePairAddress theirs = hello.address;
  theirs.gid = path.gids.theirs;
  pairs_->connect(path.gids.mine, theirs, context_.settings);
  for (std::uint32_t pair = 0; pair < pair_count_; ++pair) {
    for (std::uint32_t i = 0; i < per_pair; ++i) {
      if (!pairs_->postReceive(pair)) throw Error(ncclSystemError, "posting receives failed");
    }
  }
  arrived_.assign(view_.slot_count, false);
  remote_ = {hello.slots_at, hello.slots_key};
  credited_ = hello.released;  // what was sent may not have arrived
  path_ = fmt::format("from {} {} to {} {} ({})", textOf(hello.port), toText(theirs.gid), path.port->name(),
                      toText(path.gids.mine), path.gids.why);
  state_ = State::open;
  outage_.opened(VerbsClock::now());
  AnswerLetter answer{.head = {LetterKind::answer, peer_.lane, epoch_, 0}, .posted = posted()};
  answer.senders_gid = path.gids.theirs;
  answer.address = pairs_->address(path.gids.mine);
  answer.slots_at = std::bit_cast<std::uint64_t>(view_.data);
  answer.headers_at = std::bit_cast<std::uint64_t>(view_.headers);
  answer.key = memory_->remoteKey();
  setText(answer.text, path.port->name());
  context_.tell(peer_.rank, toLetter(answer));
  if (context_.tell_path)
    context_.tell_path(fmt::format("RDMA with {}, lane {}: {}", peer_.name, peer_.lane, path_));
}

void ReceivingEnd::refuse(const HelloLetter& hello, const std::string& why) {
  AnswerLetter answer{.head = {LetterKind::answer, peer_.lane, hello.head.epoch, 0}, .is_refused = 1};
  setText(answer.text, why);
  context_.tell(peer_.rank, toLetter(answer));
}

void ReceivingEnd::hear(const ByeLetter& bye) {
  // What is on its way by RDMA is there already: the sender had its acknowledgement.
  if (bye.head.epoch == epoch_ && state_ == State::open) receive();
  close();
}

void ReceivingEnd::lost(const std::string& problem, VerbsClock::time_point now) {
  problem_ = fmt::format("{}, {}", problem, path_);
  drop();
  if (context_.is_retired(peer_.rank)) {
    state_ = State::closed;
    return;
  }
  state_ = State::lost;
  outage_.begin(now);
  BrokenLetter broken{.head = {LetterKind::broken, peer_.lane, epoch_, 0}};
  setText(broken.text, problem);
  context_.tell(peer_.rank, toLetter(broken));
}

void ReceivingEnd::portFailed(const VerbsDevice* device, int port, const std::string& what) {
  if (pairs_ == nullptr || pairs_->port().device.get() != device) return;
  if (port != 0 && pairs_->port().number != port) return;
  lost(what, VerbsClock::now());
}

void ReceivingEnd::tend(VerbsClock::time_point now) {
  if (state_ == State::closed || state_ == State::absent) return;
  if (context_.is_retired(peer_.rank)) {
    if (state_ == State::lost) close();
    return;
  }
  if (state_ == State::open) {
    if (queue_.isSilentFor(kSilence, now)) lost("no acknowledgement of credits for 2 s", now);
    return;
  }
  if (!outage_.exceeds(context_.settings.recovery + kReceiverGrace, now)) return;
  close();
  context_.fail(
      fmt::format("the RDMA connection from {} is lost, and was not made again for {} ms: {}. Are the ports "
                  "of both hosts up and the cables in? TUTTI_NET_RECOVERY allows for longer interruptions",
                  peer_.name, context_.settings.recovery.count(), problem_));
}

void ReceivingEnd::drop() {
  pairs_.reset();
  memory_.reset();
}

void ReceivingEnd::close() {
  state_ = State::closed;
  drop();
}

// Slots.

bool ReceivingEnd::receive() {
  if (state_ != State::open) return false;
  std::array<ibv_wc, 16> completions;
  const std::uint64_t before = posted();
  while (state_ == State::open) {
    const std::span some = pairs_->poll(completions);
    if (some.empty()) break;
    const auto now = VerbsClock::now();
    for (const ibv_wc& completion : some) {
      if (completion.status != IBV_WC_SUCCESS) {
        lost(explain(pairs_->causeOf(some)), now);
      } else {
        take(completion, now);
      }
      if (state_ != State::open) break;
    }
  }
  return posted() != before;
}

void ReceivingEnd::take(const ibv_wc& completion, VerbsClock::time_point now) {
  outage_.end();
  if ((completion.opcode & IBV_WC_RECV) == 0) return queue_.completed(completion.wr_id, now);
  const std::uint32_t low = ntohl(completion.imm_data);
  const std::uint64_t next = posted();
  const std::uint64_t sequence = next + static_cast<std::uint32_t>(low - static_cast<std::uint32_t>(next));
  if (sequence >= released() + view_.slot_count) return lost("a slot that was not free was written", now);
  const std::uint64_t place = sequence % view_.slot_count;
  if (!pairs_->postReceive(static_cast<std::uint32_t>(place % pair_count_)))
    return lost("the receive queue takes no more", now);
  arrived_[place] = true;
  publish();
}

/// In order, whichever queue pair they came on.
void ReceivingEnd::publish() {
  for (;;) {
    const std::uint64_t sequence = posted();
    const std::uint64_t place = sequence % view_.slot_count;
    if (state_ != State::open || !arrived_[place]) return;
    arrived_[place] = false;
    const SlotHeader& header = view_.header(sequence);
    const bool fits = header.sequence == sequence && header.bytes <= view_.slot_bytes;
    if (!fits || !isIntactWire(header, {view_.slot(sequence), header.bytes}, context_.checksums)) {
      return lost(fmt::format("slot {} was altered on its way; it is asked for again", sequence),
                  VerbsClock::now());
    }
    // Publishes slot and header, which the device wrote before its completion; pairs with the acquire in
    // await.
    view_.posted->value.store(sequence + 1, std::memory_order_release);
  }
}

// Credits.

bool ReceivingEnd::hasResult(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  return header.returns != 0 && header.bytes != 0;
}

bool ReceivingEnd::isDue() const {
  const std::uint64_t released = this->released();
  if (released - credited_ >= std::max<std::uint64_t>(1, view_.slot_count / 2)) return true;
  for (std::uint64_t sequence = credited_; sequence < released; ++sequence) {
    if ((view_.header(sequence).from_region & kPromptSlot) != 0) return true;
  }
  return false;
}

void ReceivingEnd::push(Credits credits) {
  while (state_ == State::open && owesCredits()) {
    if (credits == Credits::lazily && !isDue()) return;
    if (!sendCredit()) return;
  }
}

/// All that is owed, or up to the next slot with a result, behind it.
bool ReceivingEnd::sendCredit() {
  std::uint64_t until = released();
  ibv_sge result{};
  ibv_send_wr write{};
  for (std::uint64_t sequence = credited_; sequence < until; ++sequence) {
    if (!hasResult(sequence)) continue;
    const SlotHeader& header = view_.header(sequence);
    result = piece(std::bit_cast<std::uint64_t>(view_.slot(sequence)), header.bytes, memory_->localKey());
    write.sg_list = &result;
    write.num_sge = 1;
    write.opcode = IBV_WR_RDMA_WRITE;
    write.wr.rdma.remote_addr = header.to;
    write.wr.rdma.rkey = header.to_region;
    until = sequence + 1;
    break;
  }
  const std::uint32_t requests = write.num_sge != 0 ? 2 : 1;
  if (!queue_.hasRoom(0, requests)) return false;
  ibv_send_wr credit{};
  credit.wr_id = queue_.ticketAfter(0, requests);
  credit.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  credit.send_flags = IBV_SEND_SIGNALED;
  credit.imm_data = htonl(static_cast<std::uint32_t>(until));
  credit.wr.rdma.remote_addr = remote_.slots_at;
  credit.wr.rdma.rkey = remote_.key;
  write.next = &credit;
  if (!pairs_->post(0, requests == 2 ? write : credit)) {
    lost("the send queue takes no more", VerbsClock::now());
    return false;
  }
  queue_.posted(0, requests, true, VerbsClock::now());
  credited_ = until;
  return true;
}

void ReceivingEnd::arm() {
  if (pairs_ != nullptr && state_ == State::open) pairs_->arm();
}

bool ReceivingEnd::isSettled() const {
  if (state_ == State::closed || state_ == State::absent) return true;
  return state_ == State::open && !owesCredits() && !queue_.isBusy();
}

}  // namespace tutti
