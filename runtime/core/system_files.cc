#include "runtime/core/system_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "runtime/core/unique_fd.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// No line of these files is longer.
constexpr std::size_t kMostBytes = 1U << 16;

/// Takes a number from the front of `text`; false, with nothing taken, where there is none.
bool takeNumber(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string firstLine(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string line;
  std::array<char, 4096> bytes{};
  while (file && line.size() < kMostBytes) {
    const ssize_t count = ::read(file.get(), bytes.data(), bytes.size());
    if (count <= 0) break;
    const std::string_view more(bytes.data(), static_cast<std::size_t>(count));
    const std::size_t end = more.find('\n');
    line += more.substr(0, end);
    if (end != std::string_view::npos) break;
  }
  return line;
}

std::int64_t numberIn(const fs::path& path, std::int64_t otherwise) {
  const std::string line = firstLine(path);
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  std::int64_t number = otherwise;
  const auto result = std::from_chars(line.data() + begin, line.data() + line.size(), number);
  return result.ec == std::errc{} ? number : otherwise;
}

std::vector<fs::path> entriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    entries.push_back(it->path());
  }
  std::ranges::sort(entries);
  return entries;
}

std::vector<int> numbersOfList(std::string_view list, int most) {
  std::vector<int> numbers;
  while (!list.empty()) {
    int first = 0;
    if (!takeNumber(list, first)) return {};
    int last = first;
    if (list.starts_with('-')) {
      list.remove_prefix(1);
      if (!takeNumber(list, last)) return {};
    }
    for (int number = first; number <= std::min(last, most); ++number) numbers.push_back(number);
    if (!list.empty() && list.front() != ',') return {};
    list.remove_prefix(std::min<std::size_t>(1, list.size()));
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

}  // namespace tutti
