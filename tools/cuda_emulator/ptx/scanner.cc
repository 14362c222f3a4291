#include "tools/cuda_emulator/ptx/scanner.h"

#include <fmt/format.h>

#include <cctype>

#include "tutti/error.h"

namespace tutti::emulator::ptx {
namespace {

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

}  // namespace

void Scanner::advance() {
  if (text_[at_] == '\n') ++line_;
  ++at_;
}

bool Scanner::comment() {
  const std::string_view rest = text_.substr(at_, 2);
  if (rest != "//" && rest != "/*") return false;
  const std::string_view end = rest == "//" ? "\n" : "*/";
  const std::size_t found = text_.find(end, at_ + 2);
  const std::size_t stop = found == std::string_view::npos ? text_.size() : found + end.size();
  while (at_ < stop) advance();
  return true;
}

void Scanner::skipBlank() {
  while (!atEnd()) {
    if (text_[at_] == '/' && comment()) continue;
    if (!std::isspace(static_cast<unsigned char>(text_[at_]))) return;
    advance();
  }
}

bool Scanner::take(char c) {
  if (peek() != c) return false;
  ++at_;
  skipBlank();
  return true;
}

void Scanner::expect(char c) {
  if (!take(c)) fail(fmt::format("'{}' expected, '{}' found", c, peek()));
}

std::string_view Scanner::word(bool dots) {
  const std::size_t begin = at_;
  while (!atEnd()) {
    // Two colons belong to a modifier such as L1::no_allocate; one ends a label.
    const bool colons = dots && text_.substr(at_, 2) == "::";
    if (!isWord(text_[at_]) && !(dots && text_[at_] == '.') && !colons) break;
    at_ += colons ? 2 : 1;
  }
  const std::string_view found = since(begin);
  skipBlank();
  return found;
}

bool Scanner::takeWord(std::string_view expected) {
  if (!text_.substr(at_).starts_with(expected)) return false;
  const std::size_t after = at_ + expected.size();
  if (after < text_.size() && isWord(text_[after])) return false;
  at_ = after;
  skipBlank();
  return true;
}

std::string_view Scanner::restOfBraces() {
  const std::size_t begin = at_;
  int depth = 1;
  while (!atEnd()) {
    const char c = text_[at_];
    if (c == '/' && comment()) continue;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) break;
    advance();
  }
  const std::string_view between = since(begin);
  expect('}');
  return between;
}

void Scanner::skipPast(char c) {
  while (!atEnd() && text_[at_] != c) advance();
  expect(c);
}

void Scanner::fail(const std::string& what) const {
  const std::size_t end = text_.find('\n', at_);
  throw Error(ncclInternalError,
              fmt::format("PTX line {}: {}, before '{}'", line_, what, text_.substr(at_, end - at_)));
}

}  // namespace tutti::emulator::ptx
