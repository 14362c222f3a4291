// What ranks and the rendezvous say to each other, inside a SecureChannel.
//
//   rank ─► Join                                  who it is
//   rank ─► Gather(data)   ◄─ Gathered(all)        one all-gather round; every rank sends one, all get all
//   rank ─► Fail(text)     ◄─ Refused(code, text)  the first failure ends the init of all ranks
//   rank ─► Leave                                 this rank is complete
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "transports/secure_channel.h"

namespace tutti {

enum class MessageType : std::uint8_t {
  join = 1,
  gather = 2,
  fail = 3,
  leave = 4,
  gathered = 5,
  refused = 6
};

/// Raised with every change of the messages, of PeerInfo or of the memory layout of links and board.
inline constexpr std::uint32_t kProtocolVersion = 1;

struct JoinMessage {
  std::uint32_t protocol_version = kProtocolVersion;
  std::int32_t nranks = 0;
  std::int32_t rank = 0;
  std::int32_t pid = 0;
  std::array<char, 64> host{};  ///< zero-terminated
};

/// A type byte, then the payload.
inline Bytes message(MessageType type, std::span<const std::uint8_t> payload = {}) {
  Bytes bytes{static_cast<std::uint8_t>(type)};
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

template <class T>
std::span<const std::uint8_t> bytesOf(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)};
}

inline std::span<const std::uint8_t> bytesOf(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline MessageType typeOf(const Bytes& bytes) {
  return bytes.empty() ? MessageType{} : static_cast<MessageType>(bytes[0]);
}

inline std::span<const std::uint8_t> payloadOf(const Bytes& bytes) {
  return std::span(bytes).subspan(bytes.empty() ? 0 : 1);
}

inline std::string textOf(std::span<const std::uint8_t> payload) { return {payload.begin(), payload.end()}; }

}  // namespace tutti
