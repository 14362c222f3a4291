// The half of a ReceivingEnd that gives slots back to their sender, with the results that it awaits in them.
#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "transports/verbs/receiving_end.h"

namespace tutti {

bool ReceivingEnd::hasResult(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  return header.returns != 0 && header.bytes != 0;
}

bool ReceivingEnd::isDue(std::uint32_t owed_limit) const {
  const std::uint64_t released = this->released();
  if (released - credited_ >= std::max(1U, owed_limit)) return true;
  for (std::uint64_t sequence = credited_; sequence < released; ++sequence) {
    if ((view_.header(sequence).from_region & kPromptSlot) != 0) return true;
  }
  return false;
}

/// A credit is a request and a packet that whoever answers at once would have to wait for: what the sender
/// can do without is sent while this rank waits for the next slot.
void ReceivingEnd::push(Credits credits) {
  const std::uint32_t slots = view_.slot_count;
  const std::uint32_t limit = credits == Credits::lazily ? slots - std::max(1U, slots / 4) : slots / 2;
  while (state_ == State::open && owesCredits()) {
    if (credits != Credits::all && !isDue(limit)) return;
    if (!sendCredit()) return;
  }
}

/// What an earlier connection brought has places that keys of this one do not open.
ResultPlace ReceivingEnd::resultPlace(std::uint64_t sequence) const {
  const SlotHeader& header = view_.header(sequence);
  if (sequence >= first_here_ && (header.from_region & kResultInPlace) != 0)
    return {header.to, header.to_region};
  return {hello_.slots_at + sequence % view_.slot_count * view_.slot_bytes, hello_.slots_key};
}

/// All that is owed, or up to the next slot with a result, behind it.
bool ReceivingEnd::sendCredit() {
  std::uint64_t sequence = credited_;
  const std::uint64_t end = released();
  while (sequence < end && !hasResult(sequence)) ++sequence;
  const bool has_result = sequence < end;
  const std::uint32_t requests = has_result ? 2 : 1;
  if (!queue_.hasRoom(0, requests)) return false;

  const std::uint64_t until = has_result ? sequence + 1 : end;
  std::uint64_t check = 0;
  ibv_sge check_piece = piece(std::bit_cast<std::uint64_t>(&check), sizeof(check), 0);
  ibv_send_wr credit{};
  credit.wr_id = queue_.ticketAfter(0, requests);
  credit.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  credit.send_flags = IBV_SEND_SIGNALED;
  credit.imm_data = htonl(static_cast<std::uint32_t>(until));
  credit.wr.rdma.remote_addr = hello_.slots_at;
  credit.wr.rdma.rkey = hello_.slots_key;
  ibv_sge result{};
  ibv_send_wr write{};
  if (has_result) {
    const std::uint64_t place = sequence % view_.slot_count;
    const std::span<const std::byte> bytes(view_.slot(sequence), view_.header(sequence).bytes);
    const ResultPlace to = resultPlace(sequence);
    result =
        spoiled_->spoil(place, piece(std::bit_cast<std::uint64_t>(bytes.data()), bytes.size(), slots_.local));
    write.sg_list = &result;
    write.num_sge = 1;
    write.opcode = IBV_WR_RDMA_WRITE;
    write.wr.rdma.remote_addr = to.address;
    write.wr.rdma.rkey = to.key;
    write.next = &credit;
    if (context_.checksums) {
      check = resultChecksum(sequence, bytes);
      credit.sg_list = &check_piece;
      credit.num_sge = 1;
      credit.send_flags |= IBV_SEND_INLINE;
      credit.wr.rdma.remote_addr =
          hello_.headers_at + place * sizeof(SlotHeader) + offsetof(SlotHeader, from);
      credit.wr.rdma.rkey = hello_.headers_key;
    }
  }
  if (!pairs_->post(0, has_result ? write : credit)) {
    lost("the send queue takes no more", VerbsClock::now());
    return false;
  }
  queue_.posted(0, requests, true, VerbsClock::now());
  credited_ = until;
  return true;
}

}  // namespace tutti
