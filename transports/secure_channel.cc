#include "transports/secure_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofBytes = crypto_auth_BYTES;
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kTagBytes = crypto_aead_chacha20poly1305_ietf_ABYTES;
static_assert(crypto_auth_KEYBYTES == std::tuple_size_v<Secret> && kProofBytes == 32);
static_assert(crypto_aead_chacha20poly1305_ietf_KEYBYTES == 32);

void append(Bytes& to, std::span<const std::uint8_t> more) { to.insert(to.end(), more.begin(), more.end()); }

std::array<std::uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonceOf(std::uint64_t counter) {
  std::array<std::uint8_t, crypto_aead_chacha20poly1305_ietf_NPUBBYTES> nonce{};
  std::memcpy(nonce.data(), &counter, sizeof(counter));
  return nonce;
}

std::array<std::uint8_t, kLengthBytes> lengthBytes(std::size_t length) {
  std::array<std::uint8_t, kLengthBytes> bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes[i] = static_cast<std::uint8_t>(length >> (8 * i));
  return bytes;
}

std::size_t lengthOf(std::span<const std::uint8_t> bytes) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= std::size_t{bytes[i]} << (8 * i);
  return length;
}

}  // namespace

SecureChannel::SecureChannel(UniqueFd socket, const Secret& secret, Role role)
    : socket_(std::move(socket)), secret_(secret), role_(role) {
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (role_ == Role::server) {
    randombytes_buf(server_nonce_.data(), server_nonce_.size());
    append(outgoing_, server_nonce_);
  } else {
    randombytes_buf(client_nonce_.data(), client_nonce_.size());
  }
}

bool SecureChannel::broken(const std::string& problem) {
  problem_ = problem;
  broken_ = true;
  return false;
}

bool SecureChannel::pump() {
  if (broken_) return false;
  const bool is_writable = writeSome();
  // Also when nothing can be sent any more: what came before the end may be the reason for it.
  const bool open = readSome() && is_writable;
  if (!established_ && !advanceHandshake()) return false;
  return open && writeSome();
}

bool SecureChannel::readSome() {
  std::array<std::uint8_t, 16384> chunk;
  // A stranger is read no further than its proof; a peer no further than the message it is sending.
  const std::size_t limit = established_ ? 2 * kMaxMessage : kNonceBytes + kProofBytes;
  while (incoming_.size() < limit) {
    const ssize_t got =
        ::recv(socket_.get(), chunk.data(), std::min(chunk.size(), limit - incoming_.size()), 0);
    if (got > 0) {
      append(incoming_, {chunk.data(), static_cast<std::size_t>(got)});
      continue;
    }
    if (got == 0) return broken("");
    if (errno == EINTR) continue;
    return errno == EAGAIN || broken(std::strerror(errno));
  }
  return true;
}

bool SecureChannel::writeSome() {
  while (!outgoing_.empty()) {
    const ssize_t put = ::send(socket_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (put > 0) {
      outgoing_.erase(outgoing_.begin(), outgoing_.begin() + put);
      continue;
    }
    if (errno == EINTR) continue;
    return errno == EAGAIN || broken(std::strerror(errno));
  }
  return true;
}

Bytes SecureChannel::takeIncoming(std::size_t bytes) {
  const auto end = incoming_.begin() + static_cast<std::ptrdiff_t>(bytes);
  Bytes taken(incoming_.begin(), end);
  incoming_.erase(incoming_.begin(), end);
  return taken;
}

SecureChannel::Key SecureChannel::proof(const char* who) const {
  Bytes text(who, who + std::strlen(who) + 1);
  append(text, server_nonce_);
  append(text, client_nonce_);
  Key result;
  crypto_auth(result.data(), text.data(), text.size(), secret_.data());
  return result;
}

void SecureChannel::deriveKeys() {
  const Key to_server = proof("key: client to server");
  const Key to_client = proof("key: server to client");
  sending_.key = role_ == Role::client ? to_server : to_client;
  receiving_.key = role_ == Role::client ? to_client : to_server;
}

/// Client: answers the server's nonce with its own and its proof.
bool SecureChannel::greet() {
  if (incoming_.size() < kNonceBytes) return true;
  const Bytes nonce = takeIncoming(kNonceBytes);
  std::copy(nonce.begin(), nonce.end(), server_nonce_.begin());
  append(outgoing_, client_nonce_);
  append(outgoing_, proof("client"));
  greeted_ = true;
  return true;
}

bool SecureChannel::advanceHandshake() {
  if (role_ == Role::client && !greeted_ && !greet()) return false;
  if (role_ == Role::client && !greeted_) return true;
  const std::size_t awaited = role_ == Role::client ? kProofBytes : kNonceBytes + kProofBytes;
  if (incoming_.size() < awaited) return true;
  if (role_ == Role::server) {
    const Bytes nonce = takeIncoming(kNonceBytes);
    std::copy(nonce.begin(), nonce.end(), client_nonce_.begin());
  }
  const Bytes claimed = takeIncoming(kProofBytes);
  const Key expected = proof(role_ == Role::client ? "server" : "client");
  if (sodium_memcmp(claimed.data(), expected.data(), kProofBytes) != 0) {
    return broken("the other end does not know the secret of this unique id");
  }
  if (role_ == Role::server) append(outgoing_, proof("server"));
  deriveKeys();
  established_ = true;
  return true;
}

void SecureChannel::send(std::span<const std::uint8_t> message) {
  assert(established_ && message.size() <= kMaxMessage);
  const auto length = lengthBytes(message.size() + kTagBytes);
  Bytes sealed(message.size() + kTagBytes);
  const auto nonce = nonceOf(sending_.counter++);
  crypto_aead_chacha20poly1305_ietf_encrypt(sealed.data(), nullptr, message.data(), message.size(),
                                            length.data(), length.size(), nullptr, nonce.data(),
                                            sending_.key.data());
  append(outgoing_, length);
  append(outgoing_, sealed);
}

UniqueFd SecureChannel::takeSocket(Bytes* rest) {
  assert(established_ && outgoing_.empty());
  *rest = std::exchange(incoming_, {});
  broken("the socket was taken");
  return std::move(socket_);
}

std::optional<Bytes> SecureChannel::receive() {
  if (!established_ || incoming_.size() < kLengthBytes) return std::nullopt;
  const std::size_t length = lengthOf(incoming_);
  if (length < kTagBytes || length > kMaxMessage + kTagBytes) {
    broken("a message of impossible length arrived");
    return std::nullopt;
  }
  if (incoming_.size() < kLengthBytes + length) return std::nullopt;
  const Bytes prefix = takeIncoming(kLengthBytes);
  const Bytes sealed = takeIncoming(length);
  Bytes message(length - kTagBytes);
  const auto nonce = nonceOf(receiving_.counter++);
  if (crypto_aead_chacha20poly1305_ietf_decrypt(message.data(), nullptr, nullptr, sealed.data(),
                                                sealed.size(), prefix.data(), prefix.size(), nonce.data(),
                                                receiving_.key.data()) != 0) {
    broken("a message was altered on its way");
    return std::nullopt;
  }
  return message;
}

}  // namespace tutti
