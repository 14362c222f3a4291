// Memory of peers that slots refer to: borrowed, worked on, given back. runtime/core/link.h has the rule.
#include <fmt/format.h>

#include <bit>
#include <chrono>

#include "kernels/host/host_executor.h"

namespace tutti {
namespace {

/// A peer hears of a failure within some tens of milliseconds, if it has a core.
constexpr std::chrono::milliseconds kOwnAgain{500};
constexpr std::chrono::milliseconds kOwnAgainHere{10'000};  ///< a thread of this process is not stopped alone

std::size_t index(int peer) { return static_cast<std::size_t>(peer); }

}  // namespace

bool HostExecutor::resolve(const LinkView& link, const SlotHeader& header, std::uint64_t sequence,
                           HeldSlot& held) {
  std::byte* slot = link.slot(sequence);
  held = {.from = slot,
          .to = slot,
          .to_address = 0,
          .bytes = header.bytes,
          .is_in_place = false,
          .scale = {header.scale}};
  if (header.bytes == 0 || header.kind == SlotKind::inline_data) return true;
  if (!borrow(link)) return false;
  moved_.read_bytes += header.bytes;
  held.is_in_place = true;
  if (header.kind == SlotKind::region) return resolveRegions(link, header, held);
  if (links_.peers[index(link.peer)].isSameProcess()) {
    held.from = std::bit_cast<const std::byte*>(header.from);
    held.to = std::bit_cast<std::byte*>(header.to);
    return true;
  }
  // The slot's own bytes are free: they hold what the kernel copies.
  std::string error;
  if (!links_.peers[index(link.peer)].read(slot, header.from, header.bytes, &error)) {
    return unreachable(link, error);
  }
  held.is_in_place = false;
  if (header.returns != 0) held.to_address = header.to;
  return true;
}

bool HostExecutor::resolveRegions(const LinkView& link, const SlotHeader& header, HeldSlot& held) {
  PeerMemory& peer = links_.peers[index(link.peer)];
  std::string error;
  held.from = peer.map(header.from_region, header.from, header.bytes, &error);
  if (held.from != nullptr && header.returns != 0) {
    held.to = peer.map(header.to_region, header.to, header.bytes, &error);
  }
  return held.from != nullptr && held.to != nullptr ? true : unreachable(link, error);
}

bool HostExecutor::borrow(const LinkView& link) {
  state(index(link.peer)).borrowing = links_.executor;
  ++borrowed_;
  is_checked_ = false;
  link.released->borrowed.store(1, std::memory_order_seq_cst);
  return wait_.monitor.isLending(link.peer);
}

void HostExecutor::giveBack(const LinkView& link, PeerState& from) {
  from.borrowing = 0;
  --borrowed_;
  link.released->borrowed.store(0, std::memory_order_seq_cst);
}

/// Who was stopped for long may have worked on what was no longer lent. Of all peers together, before the
/// first of them is given its slot back: results of one are in the memory of others.
bool HostExecutor::isStillLent(const LinkView& released) {
  if (is_checked_ || borrowed_ == 0) return true;
  is_checked_ = true;
  const bool is_only = borrowed_ == 1 && state(index(released.peer)).borrowing == links_.executor;
  if (is_only) return wait_.monitor.isLending(released.peer);
  for (const LinkView& link : links_.inbound) {
    if (link.peer < 0 || state(index(link.peer)).borrowing != links_.executor) continue;
    if (!wait_.monitor.isLending(link.peer)) return false;
  }
  return true;
}

void HostExecutor::giveBackAll() {
  if (streamed_) streamingFence();
  streamed_ = false;
  for (const LinkView& link : links_.inbound) {
    if (link.peer < 0) continue;
    PeerState& from = state(index(link.peer));
    if (from.borrowing == links_.executor) giveBack(link, from);
  }
}

void HostExecutor::awaitOwn() const {
  const FaultCell none;
  NoMonitor monitor;
  const WaitContext patient{none, monitor, wait_.spins, wait_.scheduler};
  const auto start = std::chrono::steady_clock::now();
  for (const LinkView& link : links_.outbound) {
    if (link.peer < 0 || state(index(link.peer)).sending != links_.executor) continue;
    const auto limit = start + (links_.peers[index(link.peer)].isSameProcess() ? kOwnAgainHere : kOwnAgain);
    patient.until(link.peer, [&] {
      return link.released->borrowed.load(std::memory_order_seq_cst) == 0 ||
             std::chrono::steady_clock::now() >= limit;
    });
  }
}

bool HostExecutor::unreachable(const LinkView& link, const std::string& error) {
  has_failed_ = true;
  // A process that dies loses its memory a moment before it is seen to be dead, which is the better message.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  wait_.until(link.peer, [limit] { return std::chrono::steady_clock::now() >= limit; });
  fault_.trip(ncclSystemError,
              fmt::format("the buffer that rank {} lent for {} cannot be reached: {}. Buffers must stay "
                          "allocated until the operation is complete",
                          link.peer, describe(plan_.descriptor), error));
  return false;
}

}  // namespace tutti
