#include "runtime/topology/notation.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace tutti {
namespace {

constexpr int kMostCpus = 65536;

/// Takes a number of 1 to `most_digits` digits from the front of `text`.
std::optional<std::uint32_t> takeNumber(std::string_view& text, int base, std::size_t most_digits) {
  std::uint32_t value = 0;
  const std::string_view digits = text.substr(0, most_digits);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - digits.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::uint32_t> wordOf(std::string_view text) {
  if (text.substr(0, 2) == "0x") text.remove_prefix(2);
  if (text.empty()) return 0;
  const std::optional<std::uint32_t> word = takeNumber(text, 16, 8);
  return text.empty() ? word : std::nullopt;
}

}  // namespace

std::optional<std::string> busIdOf(std::string_view text) {
  const auto first = takeNumber(text, 16, 8);
  if (!first || !take(text, ':')) return std::nullopt;
  const auto second = takeNumber(text, 16, 2);
  if (!second) return std::nullopt;
  const bool has_domain = take(text, ':');
  const auto third = has_domain ? takeNumber(text, 16, 2) : second;
  if (!third || !take(text, '.')) return std::nullopt;
  const auto function = takeNumber(text, 16, 1);
  if (!function || !text.empty()) return std::nullopt;
  const std::uint32_t domain = has_domain ? *first : 0;
  const std::uint32_t bus = has_domain ? *second : *first;
  if (bus > 0xff) return std::nullopt;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, *third, *function);
}

std::optional<double> linkSpeedOf(std::string_view text) {
  if (text.empty() || text.substr(0, 7) == "Unknown") return 0;
  double speed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), speed);
  if (error != std::errc() || !(speed >= 0 && speed <= 1024)) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (unit != "GT/s" && unit != "GT/s PCIe") return std::nullopt;
  return speed + 0.0;  // -0 is 0
}

std::optional<std::vector<int>> cpusOfMask(std::string_view text) {
  std::vector<std::uint32_t> words;  // the highest first
  while (true) {
    const std::size_t comma = text.find(',');
    const std::optional<std::uint32_t> word = wordOf(text.substr(0, comma));
    if (!word || words.size() == kMostCpus / 32) return std::nullopt;
    words.push_back(*word);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::vector<int> cpus;
  int first = 0;  // of the word
  for (auto word = words.rbegin(); word != words.rend(); ++word, first += 32) {
    for (int bit = 0; bit < 32; ++bit) {
      if ((*word >> bit & 1U) != 0) cpus.push_back(first + bit);
    }
  }
  return cpus;
}

std::string maskOfCpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return "";
  std::vector<std::uint32_t> words(static_cast<std::size_t>(cpus.back()) / 32 + 1);
  for (const int cpu : cpus) words[static_cast<std::size_t>(cpu) / 32] |= std::uint32_t{1} << (cpu % 32);
  std::string text;
  while (!words.empty()) {
    text += fmt::format("{}{:08x}", text.empty() ? "" : ",", words.back());
    words.pop_back();
  }
  return text;
}

std::optional<std::vector<int>> cpusOfList(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const auto first = takeNumber(text, 10, 5);
    if (!first) return std::nullopt;
    const auto last = take(text, '-') ? takeNumber(text, 10, 5) : first;
    if (!last || *last < *first || *last >= kMostCpus) return std::nullopt;
    if (!cpus.empty() && static_cast<int>(*first) <= cpus.back()) return std::nullopt;
    for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (!text.empty() && (!take(text, ',') || text.empty())) return std::nullopt;
  }
  return cpus;
}

std::string listOfCpus(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace tutti
