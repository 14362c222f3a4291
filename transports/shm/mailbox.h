// Hands file descriptors between processes of one host: one datagram per segment, over a Unix socket.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "runtime/core/peer.h"
#include "runtime/core/unique_fd.h"
#include "transports/segment.h"
#include "transports/transport.h"

namespace tutti {

/// Proves that a message comes from a rank of the same communicator.
using MailboxKey = std::array<std::uint8_t, 32>;

/// One rank's mailbox: an abstract Unix datagram socket with a name of the kernel's choice. Every letter
/// carries one descriptor, is authenticated by the communicator's key, and is accepted only from the process
/// (by the kernel's credentials) that the bootstrap named as the sender. Anything else is dropped. Used by
/// one thread.
class Mailbox {
 public:
  explicit Mailbox(const MailboxKey& key);

  /// Name of the socket, for PeerInfo.
  const std::array<char, 16>& address() const { return address_; }

  /// Sends a segment to a peer on this host; takes in what arrives while the peer's mailbox is full. Throws
  /// Error naming the peer.
  void send(const PeerInfo& to, const Segment& segment, Deadline deadline);

  /// Waits for the descriptor of segment `token` from `from`. Throws Error naming the peer, within a second
  /// of its end.
  UniqueFd receive(const PeerInfo& from, const SegmentToken& token, Deadline deadline);

 private:
  struct Letter {
    std::int32_t pid;
    UniqueFd fd;
  };
  void readOne();
  bool isThere(const PeerInfo& peer) const;

  MailboxKey key_;
  UniqueFd socket_;
  std::array<char, 16> address_{};
  std::map<SegmentToken, Letter> arrived_;
};

}  // namespace tutti
