#include "runtime/core/environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "runtime/core/setting_row.h"
#include "runtime/core/unique_fd.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr const char* kFileVariable = "NCCL_CONF_FILE";
constexpr const char* kVariables = "environment";
constexpr std::size_t kMostFileBytes = 1 << 20;

/// Names that others read: the emulation of GPUs, tests, the build.
constexpr std::array<std::string_view, 7> kOthers{"TUTTI_EMULAT", "TUTTI_TEST_", "TUTTI_CHAOS_", "TUTTI_SIM_",
                                                  "TUTTI_GUEST_", "NCCL_TESTS_", "NCCL_VERSION"};

bool isOurs(std::string_view name) { return name.starts_with("NCCL_") || name.starts_with("TUTTI_"); }

template <class Take>
void forEachSetting(const Take& take) {
  for (const auto rows : {actingSettings(), idleSettings()}) {
    for (const SettingRow& row : rows) take(row.name);
  }
}

bool isKnown(std::string_view name) {
  bool found =
      std::ranges::any_of(kOthers, [name](std::string_view other) { return name.starts_with(other); });
  forEachSetting([&](std::string_view known) { found = found || known == name; });
  return found;
}

/// How many characters to change, add, or leave out (Levenshtein), row by row.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// Of a file that may hold anything, for a message.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result(text.substr(0, kMost));
  std::ranges::replace_if(
      result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kMost ? result + "..." : result;
}

/// What is wrong with a line of a file that is neither empty nor a comment; "" for NAME=VALUE.
std::string problemOf(std::string_view line) {
  constexpr std::string_view kExpected = "expected NAME=VALUE, or # and a comment";
  const std::size_t equals = line.find('=');
  const std::string_view name = trimmed(line.substr(0, equals));
  if (line.find('\0') != std::string_view::npos) return fmt::format("it has a zero byte; {}", kExpected);
  if (equals == std::string_view::npos) return fmt::format("\"{}\" has no =; {}", shown(line), kExpected);
  if (name.empty()) return fmt::format("there is no name before the =; {}", kExpected);
  if (name.find_first_of(" \t") != std::string_view::npos)
    return fmt::format("\"{}\" is no name, it has a space; {}", shown(name), kExpected);
  if (isOurs(name)) return "";
  const std::string_view meant = closestSetting(name);
  return fmt::format("only names with NCCL_ or TUTTI_ before them are read from files; {}",
                     meant.empty() ? fmt::format("set {} in the environment", shown(name))
                                   : fmt::format("{} is none; did you mean {}?", shown(name), meant));
}

bool isQuoted(std::string_view value) {
  return value.size() >= 2 && value.front() == value.back() &&
         (value.front() == '"' || value.front() == '\'');
}

std::string_view withoutPrefix(std::string_view name) { return name.substr(name.find('_') + 1); }

/// Nothing where it cannot be read, or not whole, with errno set. Never waits, whatever kind of file it is.
std::optional<std::string> contentsOf(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return std::nullopt;
  std::string text(kMostFileBytes + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length > kMostFileBytes) {
    errno = EFBIG;
    return std::nullopt;
  }
  text.resize(length);
  return text;
}

}  // namespace

Environment Environment::ofProcess() {
  Environment result;
  const auto addIfThere = [&result](const std::string& path) {
    if (const auto text = contentsOf(path)) {
      result.addFile(path, *text);
    } else if (errno == EFBIG) {
      result.bad_lines_.push_back(fmt::format("{} is passed over: {}", path, std::strerror(errno)));
    }
  };
  result.addVariables(environ);
  if (const char* path = std::getenv(kFileVariable); path != nullptr && *path != '\0') {
    const auto text = contentsOf(path);
    if (!text) {
      throw Error(ncclInvalidUsage, fmt::format("{}=\"{}\": expected a file that can be read: {}",
                                                kFileVariable, path, std::strerror(errno)));
    }
    result.addFile(path, *text);
  } else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    addIfThere(fmt::format("{}/.nccl.conf", home));
  }
  addIfThere("/etc/nccl.conf");
  return result;
}

void Environment::add(std::string_view name, std::string_view value, const std::string& origin) {
  if (isOurs(name)) values_.try_emplace(std::string(name), Value{std::string(value), origin});
}

void Environment::addVariables(const char* const* variables) {
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view entry = *variables;
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos) add(entry.substr(0, equals), entry.substr(equals + 1), kVariables);
  }
}

void Environment::addFile(const std::string& path, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of some editors
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::string origin = fmt::format("{} line {}", path, number);
    if (const std::string problem = problemOf(line); !problem.empty()) {
      bad_lines_.push_back(fmt::format("{} is passed over: {}", origin, problem));
      continue;
    }
    const std::size_t equals = line.find('=');
    add(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)), origin);
  }
}

const Environment::Value* Environment::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? &found->second : nullptr;
}

std::vector<std::string> Environment::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) {
    if (!isKnown(name)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> Environment::warnings() const {
  constexpr std::size_t kMost = 20;  // of a file that is none of settings
  std::vector<std::string> result(
      bad_lines_.begin(),
      bad_lines_.begin() + static_cast<std::ptrdiff_t>(std::min(bad_lines_.size(), kMost)));
  for (const std::string& name : unknown()) {
    const std::string_view meant = closestSetting(name);
    if (meant.empty()) continue;
    result.push_back(fmt::format("{} ({}) is no variable that Tutti or NCCL knows; did you mean {}?", name,
                                 find(name)->origin, meant));
  }
  for (const auto& [name, value] : values_) {
    if (!isQuoted(value.text)) continue;
    result.push_back(fmt::format("{} ({}): the quotes are part of the value {}, as in NCCL; leave them out",
                                 name, value.origin, shown(value.text)));
  }
  return result;
}

std::string_view closestSetting(std::string_view name) {
  constexpr std::size_t kClose = 2;
  constexpr std::size_t kLongest = 64;
  std::string_view best;
  std::size_t least = kClose + 1;
  if (name.size() > kLongest) return best;
  forEachSetting([&](std::string_view known) {
    const std::size_t distance = withoutPrefix(name) == withoutPrefix(known) ? 1 : editDistance(name, known);
    if (distance >= least) return;
    least = distance;
    best = known;
  });
  return best;
}

Settings readSettings(const Environment& environment, std::vector<std::string>* problems) {
  std::set<std::string, std::less<>> wrong;
  std::string asked;
  for (;;) {
    try {
      return readSettings([&](const char* name) -> const char* {
        asked = name;
        const Environment::Value* value = wrong.contains(asked) ? nullptr : environment.find(asked);
        return value != nullptr ? value->text.c_str() : nullptr;
      });
    } catch (const Error& error) {
      const Environment::Value* value = environment.find(asked);
      const bool is_of_file = value != nullptr && value->origin != kVariables;
      std::string text = error.what();
      if (value != nullptr && isQuoted(value->text))
        text += " The quotes are part of the value, as in NCCL: leave them out.";
      if (is_of_file) text += fmt::format(" It comes from {}", value->origin);
      const bool is_new = wrong.insert(asked).second;  // a default cannot be wrong
      if (problems == nullptr || !is_new) throw Error(error.code(), text);
      problems->push_back(text);
    }
  }
}

}  // namespace tutti
