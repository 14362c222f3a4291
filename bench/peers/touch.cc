#include "bench/peers/touch.h"

#include <cstring>

namespace tutti::peers {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

void rewrite(std::byte* buffer, std::size_t bytes, Pattern pattern) {
  const std::size_t whole = bytes / kWord;
  for (std::size_t i = 0; i < whole; ++i) std::memcpy(buffer + i * kWord, &pattern.word, kWord);
  std::memcpy(buffer + whole * kWord, &pattern.word, bytes % kWord);
}

bool holds(const std::byte* buffer, std::size_t bytes, Pattern pattern) {
  const std::size_t whole = bytes / kWord;
  std::uint64_t differences = 0;  // no early end: the time must not depend on what is found
  for (std::size_t i = 0; i < whole; ++i) {
    std::uint64_t word;
    std::memcpy(&word, buffer + i * kWord, kWord);
    differences |= word ^ pattern.word;
  }
  return differences == 0 && std::memcmp(buffer + whole * kWord, &pattern.word, bytes % kWord) == 0;
}

}  // namespace tutti::peers
