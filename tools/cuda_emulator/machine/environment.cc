#include "tools/cuda_emulator/machine/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tutti::emulator {
namespace {

constexpr std::string_view kPrefix = "TUTTI_EMULAT";
constexpr std::string_view kKnown[] = {
    "TUTTI_EMULATED_GPUS",        "TUTTI_EMULATED_GPU_BYTES", "TUTTI_EMULATED_PEER_ACCESS",
    "TUTTI_EMULATED_HOST_NODES",  "TUTTI_EMULATED_MEMCHECK",  "TUTTI_EMULATED_FAULTS",
    "TUTTI_EMULATOR_CHECK_LEAKS", "TUTTI_EMULATOR_CACHE",     "TUTTI_EMULATOR_CXX"};

void say(const std::string& line) { std::fputs(("cuda emulator: " + line + "\n").c_str(), stderr); }

[[noreturn]] void refuse(const char* name, std::string_view value, const std::string& expected) {
  say(fmt::format("{}=\"{}\": expected {}", name, value, expected));
  std::_Exit(2);
}

std::string_view valueOf(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool flagOf(const char* name, bool otherwise) {
  const auto text = valueOf(name);
  if (text.empty()) return otherwise;
  if (text != "0" && text != "1") refuse(name, text, "0 or 1");
  return text == "1";
}

std::size_t numberOf(const char* name, std::size_t otherwise, std::size_t most) {
  const auto text = valueOf(name);
  if (text.empty()) return otherwise;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > most)
    refuse(name, text, fmt::format("a whole number from 0 to {}", most));
  return value;
}

void warnOfUnknownVariables() {
  for (char* const* variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view entry = *variable;
    const auto name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix) || std::ranges::find(kKnown, name) != std::end(kKnown)) continue;
    say(fmt::format("{} is no variable of the emulator and changes nothing; it knows {}", name,
                    fmt::join(kKnown, ", ")));
  }
}

}  // namespace tutti::emulator
