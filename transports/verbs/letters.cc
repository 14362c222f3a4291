#include "transports/verbs/letters.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tutti {
namespace {

constexpr std::uint32_t kNumbers = 1U << 24;  ///< of queue pairs, and of packets

std::string problemOf(const QueuePairAddress& address, std::uint32_t pairs) {
  for (std::uint32_t i = 0; i < pairs; ++i) {
    if (address.numbers[i] == 0 || address.numbers[i] >= kNumbers)
      return fmt::format("queue pair number {}", address.numbers[i]);
  }
  if (address.first_packet >= kNumbers) return fmt::format("packet number {}", address.first_packet);
  if (address.mtu < IBV_MTU_256 || address.mtu > IBV_MTU_4096) return fmt::format("MTU code {}", address.mtu);
  return "";
}

std::string problemOf(const char* what, std::uint64_t address, std::uint64_t bytes) {
  if (address != 0 && address <= std::numeric_limits<std::uint64_t>::max() - bytes) return "";
  return fmt::format("{} of {} bytes at address {:#x}", what, bytes, address);
}

}  // namespace

std::string problemOf(const LetterHead& head) {
  const bool is_known = head.kind >= LetterKind::hello && head.kind <= LetterKind::bye;
  if (!is_known) return fmt::format("kind {}", static_cast<std::uint32_t>(head.kind));
  const bool to_receiver = head.kind == LetterKind::hello || head.kind == LetterKind::bye;
  if (head.to_receiver != (to_receiver ? 1 : 0)) return "the wrong direction";
  return head.epoch == 0 ? "no epoch" : "";
}

std::string problemOf(const HelloLetter& hello, const LinkView& view) {
  if (hello.slot_count != view.slot_count || hello.slot_bytes != view.slot_bytes) {
    return fmt::format("{} slots of {} bytes, but {} of {} here", hello.slot_count, hello.slot_bytes,
                       view.slot_count, view.slot_bytes);
  }
  const std::uint64_t released = view.released->value.load(std::memory_order_acquire);
  if (hello.released > released)
    return fmt::format("{} released slots, but {} here", hello.released, released);
  if (hello.queue_pairs == 0 || hello.queue_pairs > kMostQueuePairs)
    return fmt::format("{} queue pairs (1 to {})", hello.queue_pairs, kMostQueuePairs);
  if (hello.gid_count == 0 || hello.gid_count > kMostGids)
    return fmt::format("{} GIDs (1 to {})", hello.gid_count, kMostGids);
  std::string problem = problemOf(hello.address, hello.queue_pairs);
  if (!problem.empty()) return problem;
  std::string slots = problemOf("slots", hello.slots_at, std::uint64_t{view.slot_count} * view.slot_bytes);
  if (!slots.empty()) return slots;
  return problemOf("headers", hello.headers_at, view.slot_count * sizeof(SlotHeader));
}

std::string problemOf(const AnswerLetter& answer, const LinkView& view, std::uint32_t queue_pairs,
                      std::span<const Gid> gids) {
  const std::uint64_t released = view.released->value.load(std::memory_order_relaxed);
  const std::uint64_t posted = view.posted->value.load(std::memory_order_acquire);
  if (answer.posted < released || answer.posted > posted)
    return fmt::format("{} slots received, of {} to {}", answer.posted, released, posted);
  if (std::ranges::find(gids, answer.senders_gid) == gids.end())
    return "a GID that is none of this port: " + toText(answer.senders_gid);
  std::string problem = problemOf(answer.address, queue_pairs);
  if (!problem.empty()) return problem;
  std::string slots = problemOf("slots", answer.slots_at, std::uint64_t{view.slot_count} * view.slot_bytes);
  if (!slots.empty()) return slots;
  return problemOf("headers", answer.headers_at, view.slot_count * sizeof(SlotHeader));
}

}  // namespace tutti
