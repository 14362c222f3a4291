// Walks a PTX text word by word, past white space and comments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti::emulator::ptx {

class Scanner {
 public:
  explicit Scanner(std::string_view text, int line = 1) : text_(text), line_(line) { skipBlank(); }

  bool atEnd() const { return at_ == text_.size(); }
  int line() const { return line_; }
  std::size_t position() const { return at_; }
  std::string_view since(std::size_t position) const { return text_.substr(position, at_ - position); }

  /// Whether nothing, not even white space, is between this word, just taken, and the next character.
  bool touches(std::string_view word) const { return word.data() + word.size() == text_.data() + at_; }

  /// The next character, '\0' at the end.
  char peek() const { return atEnd() ? '\0' : text_[at_]; }
  bool take(char c);
  /// Throws Error unless c is next.
  void expect(char c);
  /// A run of letters, digits, _, $, %, and with `dots` of dots and colons, as opcodes have; may be empty.
  std::string_view word(bool dots = false);
  bool takeWord(std::string_view expected);
  /// Past the brace that closes the one just taken; returns what is between them.
  std::string_view restOfBraces();
  /// Past the next `c`.
  void skipPast(char c);
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void skipBlank();
  void advance();
  bool comment();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
};

}  // namespace tutti::emulator::ptx
