// The half of a SendingEnd that writes slots into the receiver's memory, while there is a connection.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/verbs/sending_end.h"

namespace tutti {

void SendingEnd::push() {
  if (!hasUnsent()) return;
  if (state_ == State::idle && !context_.is_retired(peer_.rank)) greet(VerbsClock::now());
  while (state_ == State::open && hasUnsent()) {
    const std::uint64_t end = posted();
    if (!send(sent_, isLastOnPair(sent_, end))) return;
    ++sent_;
  }
}

std::uint32_t SendingEnd::pairOf(std::uint64_t sequence) const {
  return static_cast<std::uint32_t>(sequence % view_.slot_count % context_.settings.queue_pairs);
}

/// Then it has to be acknowledged: silence is noticed by what is outstanding, on each queue pair.
bool SendingEnd::isLastOnPair(std::uint64_t sequence, std::uint64_t end) const {
  for (std::uint64_t next = sequence + 1; next < end; ++next) {
    if (pairOf(next) == pairOf(sequence)) return false;
  }
  return true;
}

/// Memory that the user registered is read in place; other memory of the user passes through the slot.
SendingEnd::Source SendingEnd::sourceOf(std::uint64_t sequence) {
  const SlotHeader& header = view_.header(sequence);
  const Source slot{{view_.slot(sequence), header.bytes}, slots_.local};
  if (header.kind != SlotKind::address || header.bytes == 0) return slot;
  const std::span<const std::byte> users(std::bit_cast<const std::byte*>(header.from), header.bytes);
  auto region = context_.user_memory.find(pairs_->port().device, users);
  if (region == nullptr) {
    if (users.data() != slot.data.data()) std::memcpy(view_.slot(sequence), users.data(), users.size());
    return slot;
  }
  const Source in_place{users, region->localKey()};
  lent_[sequence % view_.slot_count].from = std::move(region);
  return in_place;
}

/// Likewise for the result; nothing: it comes into the slot.
std::optional<ResultPlace> SendingEnd::resultPlace(std::uint64_t sequence) {
  const SlotHeader& header = view_.header(sequence);
  if (header.returns == 0 || header.kind != SlotKind::address || header.bytes == 0) return std::nullopt;
  const std::span<const std::byte> users(std::bit_cast<const std::byte*>(header.to), header.bytes);
  auto region = context_.user_memory.find(pairs_->port().device, users);
  if (region == nullptr) return std::nullopt;
  const ResultPlace place{header.to, region->remoteKey()};
  lent_[sequence % view_.slot_count].to = std::move(region);
  return place;
}

bool SendingEnd::send(std::uint64_t sequence, bool is_last) {
  const std::uint64_t place = sequence % view_.slot_count;
  const std::uint32_t pair = pairOf(sequence);
  const SlotHeader& header = view_.header(sequence);
  const bool is_together = remote_.takes_together && header.bytes <= kTogetherBytes;
  const std::uint32_t requests = is_together || header.bytes == 0 ? 1 : 2;
  if (!queue_.hasRoom(pair, requests)) return false;

  const Source source = sourceOf(sequence);
  SlotHeader wire = toWireHeader(header, resultPlace(sequence), source.data, context_.checksums);
  ibv_sge data = spoiled_->spoil(
      place, piece(std::bit_cast<std::uint64_t>(source.data.data()), source.data.size(), source.key));

  const bool is_signalled = is_last || queue_.wantsSignal(pair);
  ibv_send_wr write{};
  write.wr_id = queue_.ticketAfter(pair, requests);
  write.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  write.send_flags = is_signalled ? unsigned{IBV_SEND_SIGNALED} : 0U;
  write.imm_data = htonl(static_cast<std::uint32_t>(sequence) & (kTogether - 1));
  const bool is_posted =
      is_together ? postTogether(sequence, wire, data, write) : postApart(sequence, wire, data, write);
  if (!is_posted) {
    lost(fmt::format("the send queue takes no more ({})", std::strerror(errno)), VerbsClock::now());
    return false;
  }
  queue_.posted(pair, requests, is_signalled, VerbsClock::now());
  return true;
}

/// Header and data as one write, to where the receiver's slot has room for the header.
bool SendingEnd::postTogether(std::uint64_t sequence, const SlotHeader& wire, const ibv_sge& data,
                              ibv_send_wr& write) {
  const std::uint64_t place = sequence % view_.slot_count;
  // In the ring, since the device may read it later.
  auto* const header = std::bit_cast<SlotHeader*>(view_.slot(sequence) - kHeaderRoom);
  *header = wire;
  std::array pieces{piece(std::bit_cast<std::uint64_t>(header), sizeof(*header), slots_.local), data};
  write.sg_list = pieces.data();
  write.num_sge = data.length == 0 ? 1 : 2;
  if (sizeof(wire) + data.length <= kInlineBytes) write.send_flags |= IBV_SEND_INLINE;
  write.imm_data |= htonl(kTogether);
  write.wr.rdma.remote_addr = remote_.slots_at + place * view_.slot_bytes - kHeaderRoom;
  write.wr.rdma.rkey = remote_.slots_key;
  return pairs_->post(pairOf(sequence), write);
}

/// The data, if there are any, then the header to its place among the receiver's.
bool SendingEnd::postApart(std::uint64_t sequence, SlotHeader& wire, ibv_sge& data, ibv_send_wr& write) {
  const std::uint64_t place = sequence % view_.slot_count;
  ibv_sge header = piece(std::bit_cast<std::uint64_t>(&wire), sizeof(wire), 0);
  write.sg_list = &header;
  write.num_sge = 1;
  write.send_flags |= IBV_SEND_INLINE;
  write.wr.rdma.remote_addr = remote_.headers_at + place * sizeof(SlotHeader);
  write.wr.rdma.rkey = remote_.headers_key;
  ibv_send_wr first{};
  first.next = &write;
  first.sg_list = &data;
  first.num_sge = 1;
  first.opcode = IBV_WR_RDMA_WRITE;
  first.wr.rdma.remote_addr = remote_.slots_at + place * view_.slot_bytes;
  first.wr.rdma.rkey = remote_.slots_key;
  return pairs_->post(pairOf(sequence), data.length == 0 ? write : first);
}

}  // namespace tutti
