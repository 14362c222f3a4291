// What opens a connection of a link, inside a SecureChannel. The dialing sender says which link it is for,
// the receiver answers where that link stands; then the channel is given up for frames. The sender sends no
// frame before it has the answer.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "transports/secure_channel.h"

namespace tutti {

inline constexpr std::uint64_t kHelloMagic = 0x316b6e694c707554;   // "TupLink1"
inline constexpr std::uint64_t kAnswerMagic = 0x31736e41706c7554;  // "TulpAns1"

struct Hello {
  std::uint64_t magic = kHelloMagic;
  std::int32_t from = 0;  ///< rank of the sender
  std::int32_t to = 0;    ///< rank of the receiver
  std::uint32_t lane = 0;
  std::uint32_t slot_count = 0;
  std::uint64_t epoch = 0;     ///< of this connection; each one of a link has a higher one than those before
  std::uint64_t released = 0;  ///< slots that the sender knows to be released
};
static_assert(sizeof(Hello) == 40 && std::is_trivially_copyable_v<Hello>);

struct Answer {
  std::uint64_t magic = kAnswerMagic;
  std::uint64_t posted = 0;  ///< slots received whole; the sender goes on with this one
};
static_assert(sizeof(Answer) == 16 && std::is_trivially_copyable_v<Answer>);

template <class Message>
Bytes toBytes(const Message& message) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&message);
  return Bytes(bytes, bytes + sizeof(message));
}

/// Nothing where `bytes` is no such message.
template <class Message>
std::optional<Message> fromBytes(const Bytes& bytes) {
  Message message;
  const std::uint64_t magic = message.magic;
  if (bytes.size() != sizeof(message)) return std::nullopt;
  auto* to = reinterpret_cast<std::uint8_t*>(&message);
  for (std::size_t i = 0; i < sizeof(message); ++i) to[i] = bytes[i];
  if (message.magic != magic) return std::nullopt;
  return message;
}

}  // namespace tutti
