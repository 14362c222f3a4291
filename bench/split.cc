#include "bench/split.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string_view>

namespace tutti::perf {
namespace {

struct Name {
  std::string_view word;
  char operation;
};
constexpr Name kNames[] = {{"AND", '&'}, {"OR", '|'}, {"MOD", '%'}, {"DIV", '/'},
                           {"&", '&'},   {"|", '|'},  {"%", '%'},   {"/", '/'}};

/// -1 where the text is no number.
int numberOf(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0') {
    const char sign = text[1];
    if (sign == 'x' || sign == 'X') base = 16;
    if (sign == 'b' || sign == 'B') base = 2;
    if (base != 10) text.remove_prefix(2);
  }
  int value = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && rest == text.data() + text.size() ? value : -1;
}

}  // namespace

Split::Split(const std::string& text) {
  std::string_view rest = text;
  for (const Name& name : kNames) {
    if (::strncasecmp(text.c_str(), name.word.data(), name.word.size()) != 0) continue;
    operation_ = name.operation;
    rest.remove_prefix(name.word.size());
    break;
  }
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  value_ = numberOf(rest);
  const bool divides_by_none = (operation_ == '%' || operation_ == '/') && value_ == 0;
  if (operation_ != '\0' && value_ >= 0 && !divides_by_none) return;
  throw std::invalid_argument(
      fmt::format(R"("{}" is none of AND, OR, MOD, DIV (or & | % /) with a number, such as "MOD 8")", text));
}

Split Split::fromEnvironment() {
  for (const char* name : {"NCCL_TESTS_SPLIT_MASK", "NCCL_TESTS_SPLIT"}) {
    const char* set = std::getenv(name);
    if (set == nullptr || *set == '\0') continue;
    std::string text = set;
    if (name == std::string_view("NCCL_TESTS_SPLIT_MASK")) {
      text.insert(0, text.starts_with("0x") || text.starts_with("0X") ? "AND " : "AND 0x");
    }
    try {
      return Split(text);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{}: {}", name, error.what()));
    }
  }
  return {};
}

int Split::colourOf(int process) const {
  switch (operation_) {
    case '&':
      return process & value_;
    case '|':
      return process | value_;
    case '%':
      return process % value_;
    case '/':
      return process / value_;
    default:
      return 0;
  }
}

GroupPlace Split::placeOf(int process, int processes) const {
  std::map<int, int> sizes;
  GroupPlace place{.number = colourOf(process), .leader = -1};
  for (int other = 0; other < processes; ++other) {
    const int colour = colourOf(other);
    ++sizes[colour];
    if (colour != place.number) continue;
    if (place.leader < 0) place.leader = other;
    if (other < process) ++place.index;
  }
  place.processes = sizes[place.number];
  for (const auto& [colour, size] : sizes) {
    if (size == sizes.begin()->second) continue;
    throw std::invalid_argument(fmt::format(
        "NCCL_TESTS_SPLIT makes groups of different sizes of {} processes: group {} has {}, group "
        "{} has {}",
        processes, sizes.begin()->first, sizes.begin()->second, colour, size));
  }
  return place;
}

}  // namespace tutti::perf
