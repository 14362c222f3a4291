// What the two ends of an RDMA link say to each other over the control plane, whose channels are
// authenticated:
//
//   sender ─► receiver   Hello    a connection is to be made, the first one or one in place of a broken one
//   receiver ─► sender   Answer   how it is reached, and where the link stands: the sender goes on from there
//   receiver ─► sender   Answer   refused: with the reason
//   either ─► other      Broken   this end's connection of that epoch is of no use any more
//   sender ─► receiver   Bye      the sender closes the link in good order: it wants no more credits
//
// A hello fences: the receiver ends the connection that there was before it says what it has, so nothing of
// the old one can arrive after that. Late letters are known by their epoch.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/core/link.h"
#include "transports/verbs/queue_pairs.h"

namespace tutti {

enum class LetterKind : std::uint32_t { hello = 1, answer, broken, bye };

/// In front of every letter. The lane and the direction say which link: `to_receiver` if the letter's reader
/// receives.
struct LetterHead {
  LetterKind kind = LetterKind::hello;
  std::uint32_t lane = 0;
  std::uint64_t epoch = 0;
  std::uint32_t to_receiver = 0;
  std::uint32_t reserved = 0;
};

inline constexpr std::size_t kMostGids = 16;
inline constexpr std::size_t kTextBytes = 640;

struct HelloLetter {
  LetterHead head;
  std::uint64_t released = 0;  ///< slots that the sender knows to be released
  std::uint32_t slot_count = 0;
  std::uint32_t slot_bytes = 0;
  std::uint32_t queue_pairs = 0;
  std::uint32_t gid_count = 0;
  std::array<Gid, kMostGids> gids{};  ///< of the sender's port
  QueuePairAddress address = {};      ///< its gid is not known yet
  std::uint64_t slots_at = 0;         ///< the sender's, for results
  std::uint64_t headers_at = 0;       ///< and for their checksums
  std::uint32_t slots_key = 0;
  std::uint32_t headers_key = 0;
  std::uint32_t is_ethernet = 0;
  std::uint32_t turn = 0;       ///< whose of the receiver's ports it is, where several are as good
  std::array<char, 64> port{};  ///< its name, for messages
};
static_assert(std::is_trivially_copyable_v<HelloLetter>);

struct AnswerLetter {
  LetterHead head;
  std::uint64_t posted = 0;  ///< slots received whole
  Gid senders_gid = {};      ///< which of the hello's the connection is to use
  QueuePairAddress address = {};
  std::uint64_t slots_at = 0;
  std::uint64_t headers_at = 0;
  std::uint32_t slots_key = 0;
  std::uint32_t headers_key = 0;
  std::uint32_t is_refused = 0;
  std::uint32_t slots_in_gpu = 0;  ///< 1: in the memory of a GPU, where the receiver's host does not see them
  std::array<char, kTextBytes> text{};  ///< the receiver's port, or why it refuses
};
static_assert(std::is_trivially_copyable_v<AnswerLetter>);

struct BrokenLetter {
  LetterHead head;
  std::array<char, kTextBytes> text{};
};

struct ByeLetter {
  LetterHead head;
  std::uint64_t posted = 0;  ///< in all
};

// What a letter asks for that cannot be, for it is forged, of another version or garbled; "" where nothing is
// wrong. Letters of earlier connections are no matter of these.
std::string problemOf(const LetterHead& head);
/// `view` is the receiver's.
std::string problemOf(const HelloLetter& hello, const LinkView& view);
/// `view` is the sender's, which greeted with so many queue pairs and these GIDs.
std::string problemOf(const AnswerLetter& answer, const LinkView& view, std::uint32_t queue_pairs,
                      std::span<const Gid> gids);

using Letter = std::vector<std::uint8_t>;

template <class T>
Letter toLetter(const T& letter) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&letter);
  return Letter(bytes, bytes + sizeof(letter));
}

/// Nothing where the bytes are no such letter.
template <class T>
std::optional<T> readLetter(std::span<const std::uint8_t> bytes) {
  T letter;
  if (bytes.size() != sizeof(letter)) return std::nullopt;
  std::memcpy(&letter, bytes.data(), sizeof(letter));
  return letter;
}

template <std::size_t kSize>
void setText(std::array<char, kSize>& to, std::string_view text) {
  text.copy(to.data(), kSize - 1);
}

template <std::size_t kSize>
std::string_view textOf(const std::array<char, kSize>& text) {
  return {text.data(), ::strnlen(text.data(), kSize - 1)};
}

}  // namespace tutti
