#include "runtime/topology/plain_text.h"

#include <cstddef>

namespace tutti {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_utf8 = false;
};

/// The first one of a text that is not empty.
Character first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7fU >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    const auto next = static_cast<unsigned char>(c);
    if ((next & 0xc0U) != 0x80) return {};
    code = (code << 6) | (next & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return {code, bytes, code >= kLeast[bytes] && code <= 0x10ffff};
}

bool isPlain(const Character& character) {
  const char32_t code = character.code;
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool is_none = (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff;
  return character.is_utf8 && !is_control && !is_none;
}

}  // namespace

std::string plainText(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const Character character = first(text);
    if (isPlain(character)) {
      plain += text.substr(0, character.bytes);
    } else {
      plain += text[0] == '\t' || text[0] == '\n' || text[0] == '\r' ? ' ' : '?';
    }
    text.remove_prefix(character.bytes);
  }
  return plain;
}

}  // namespace tutti
