// An authenticated, encrypted message channel over a TCP socket: for the bootstrap, and to open data
// connections.
//
// Both ends know a 256-bit secret. Nothing that the other end sends is looked at before it has proved that it
// knows the secret too:
//   server ─► client   32 random bytes S
//   client ─► server   32 random bytes C, and MAC(secret, "client", S, C)
//   server ─► client   MAC(secret, "server", S, C)
// Both proofs depend on fresh randomness of the other side, so a recorded conversation cannot be replayed.
// Messages follow, each encrypted and authenticated (ChaCha20-Poly1305) under a key per direction that is
// derived from the secret, S and C, with a counter as nonce: none can be altered, repeated, dropped or
// reordered unseen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/unique_fd.h"

namespace tutti {

/// 256 bits that only the ranks of one communicator know. Never logged.
using Secret = std::array<std::uint8_t, 32>;

using Bytes = std::vector<std::uint8_t>;

/// Non-blocking; whoever polls the descriptor calls pump(). Used by one thread.
class SecureChannel {
 public:
  enum class Role { client, server };
  static constexpr std::size_t kMaxMessage = 1U << 20;

  /// Takes a connected socket and makes it non-blocking.
  SecureChannel(UniqueFd socket, const Secret& secret, Role role);

  /// Reads and writes what is possible now. False once the channel is of no more use: see problem().
  bool pump();

  /// Whether the other end has proved itself.
  bool established() const { return established_; }

  /// Queues a message of at most kMaxMessage bytes. Only when established.
  void send(std::span<const std::uint8_t> message);

  /// The next whole message that has arrived; also what came before the channel ended.
  std::optional<Bytes> receive();

  int fd() const { return socket_.get(); }
  /// Ends the channel and gives its socket away, for what needs no encryption. What the other end sent after
  /// the last message that was received is in *rest. Only when established and nothing waits to be written.
  UniqueFd takeSocket(Bytes* rest);
  bool wantsToWrite() const { return !outgoing_.empty(); }
  /// Why pump() returned false; "" for an orderly end.
  const std::string& problem() const { return problem_; }

 private:
  using Nonce = std::array<std::uint8_t, 32>;
  using Key = std::array<std::uint8_t, 32>;

  struct Direction {
    Key key{};
    std::uint64_t counter = 0;
  };

  bool readSome();
  bool writeSome();
  bool advanceHandshake();
  bool greet();
  Key proof(const char* who) const;
  void deriveKeys();
  bool broken(const std::string& problem);
  Bytes takeIncoming(std::size_t bytes);

  UniqueFd socket_;
  Secret secret_;
  Role role_;
  bool established_ = false;
  bool broken_ = false;
  bool greeted_ = false;
  Nonce server_nonce_{};
  Nonce client_nonce_{};
  Direction sending_;
  Direction receiving_;
  Bytes incoming_;
  Bytes outgoing_;
  std::string problem_;
};

}  // namespace tutti
