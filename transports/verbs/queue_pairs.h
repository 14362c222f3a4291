// One end of a connection: reliable queue pairs that share a completion queue.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "transports/verbs/device.h"

namespace tutti {

inline constexpr std::uint32_t kMostQueuePairs = 8;

/// How an end is reached. Fixed layout: ranks tell each other.
struct QueuePairAddress {
  std::array<std::uint32_t, kMostQueuePairs> numbers{};
  std::uint32_t first_packet = 0;  ///< packet sequence number that the end sends first, on all of its pairs
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;  ///< as an ibv_mtu
  std::uint8_t reserved = 0;
  Gid gid = {};
  std::uint16_t partition = 0;  ///< key
  std::uint16_t reserved2 = 0;
};
static_assert(sizeof(QueuePairAddress) == 64 && std::is_trivially_copyable_v<QueuePairAddress>);

/// Of each queue pair.
struct QueueDepth {
  std::uint32_t sends = 0;
  std::uint32_t receives = 0;
  std::uint8_t reads = 0;  ///< RDMA reads under way, in either direction; 0: none are allowed
};

/// Used by one thread at a time.
class QueuePairs {
 public:
  /// Takes receives, and waits to be connected. Its events, and those of its completion queue, carry this
  /// object's address. Throws Error.
  QueuePairs(const VerbsPort& port, std::uint32_t count, QueueDepth depth, const RdmaSettings& settings);
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;
  /// Nothing is read or written by the device any more, on this side.
  ~QueuePairs();

  QueuePairAddress address(const Gid& mine) const;
  /// Ready to receive and to send. Throws Error. May take seconds: see connecting.h.
  void connect(const Gid& mine, const QueuePairAddress& remote, const RdmaSettings& settings);

  const VerbsPort& port() const { return port_; }

  /// A receive without memory, for one write with an immediate. False where the queue takes no more, or the
  /// pair has failed.
  bool postReceive(std::uint32_t pair);
  bool post(std::uint32_t pair, ibv_send_wr& first);

  /// Completions that have come, in `room`.
  std::span<ibv_wc> poll(std::span<ibv_wc> room);
  /// The next completion makes the channel readable.
  void arm();
  /// Its event was taken from the channel.
  void tookEvent() {
    ++unacknowledged_;
    is_armed_ = false;
  }

 private:
  void close();

  VerbsPort port_;
  const Ibverbs& verbs_;
  ibv_cq* completions_ = nullptr;
  std::vector<ibv_qp*> pairs_;
  std::uint32_t first_packet_ = 0;
  std::uint8_t reads_;
  unsigned unacknowledged_ = 0;
  bool is_armed_ = false;
};

/// Slots of a link that travel on each of its queue pairs: slot s goes on pair s % pairs.
constexpr std::uint32_t slotsPerPair(std::uint32_t slots, std::uint32_t pairs) {
  return (slots + pairs - 1) / pairs;
}

inline ibv_sge piece(std::uint64_t address, std::size_t bytes, std::uint32_t key) {
  return {.addr = address, .length = static_cast<std::uint32_t>(bytes), .lkey = key};
}

}  // namespace tutti
