#include "tools/train/data.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "tools/train/errors.h"

namespace tutti::train {
namespace {

// Larger texts would only cost memory: a step reads batch * (context + 1) symbols at random places.
constexpr std::size_t kMaxDataBytes = std::size_t{1} << 30;

std::string systemWords(int error) { return std::generic_category().message(error); }

std::vector<std::uint8_t> readFile(const std::string& path) {
  // fopen succeeds on a directory and only reading it fails, so directories are told apart beforehand.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UsageError(fmt::format("--data {}: is a directory; name a file", path));
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw UsageError(fmt::format("--data {}: cannot be opened: {}", path, systemWords(errno)));

  std::vector<std::uint8_t> bytes;
  std::array<std::uint8_t, 65536> block{};
  std::size_t got = 0;
  while ((got = std::fread(block.data(), 1, block.size(), file.get())) > 0) {
    if (bytes.size() + got > kMaxDataBytes) {
      throw UsageError(
          fmt::format("--data {}: has more than {} bytes; use a part of it", path, kMaxDataBytes));
    }
    bytes.insert(bytes.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(got));
  }
  if (std::ferror(file.get()) != 0) {
    throw UsageError(fmt::format("--data {}: cannot be read: {}", path, systemWords(errno)));
  }
  return bytes;
}

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

std::uint64_t Random::below(std::uint64_t bound) {
  // 2^64 mod bound values at the low end would make the small remainders more likely: draw again on them.
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t bits = next();
  while (bits < unfair) bits = next();
  return bits % bound;
}

double Random::symmetric(double limit) {
  const double unit = static_cast<double>(next() >> 11U) * 0x1p-53;
  return limit * (2.0 * unit - 1.0);
}

Corpus makeCorpus(std::string path, std::span<const std::uint8_t> bytes) {
  std::array<bool, 256> present{};
  for (const std::uint8_t byte : bytes) present[byte] = true;
  std::array<std::uint8_t, 256> symbol_of{};
  Corpus corpus;
  for (std::size_t byte = 0; byte < present.size(); ++byte) {
    if (present[byte]) symbol_of[byte] = static_cast<std::uint8_t>(corpus.vocabulary++);
  }
  corpus.path = std::move(path);
  corpus.hash = XXH3_64bits(bytes.data(), bytes.size());
  corpus.symbols.resize(bytes.size());
  std::transform(bytes.begin(), bytes.end(), corpus.symbols.begin(),
                 [&](std::uint8_t byte) { return symbol_of[byte]; });
  return corpus;
}

Corpus loadCorpus(const std::string& path, const Window& window) {
  const std::vector<std::uint8_t> bytes = readFile(path);
  if (bytes.empty()) throw UsageError(fmt::format("--data {}: is empty", path));
  const std::size_t needed = window.context + window.sequence;
  if (bytes.size() < needed) {
    throw UsageError(
        fmt::format("--data {}: has {} bytes, but one sequence needs {} (--context {} and --sequence {})",
                    path, bytes.size(), needed, window.context, window.sequence));
  }
  return makeCorpus(path, bytes);
}

std::string defaultDataPath() {
  const std::string folder = "/usr/share/common-licenses/";
  for (const char* name : {"GPL-3", "Apache-2.0", "GPL-2"}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(folder + name, ignored)) return folder + name;
  }
  throw UsageError(fmt::format("no text in {} (GPL-3, Apache-2.0, GPL-2): name a file with --data", folder));
}

std::vector<std::size_t> batchPositions(const Corpus& corpus, const Window& window, std::size_t batch,
                                        std::uint64_t seed, std::size_t step) {
  // One stream per step: the first output of the seed's stream, moved by the step, seeds it.
  Random random(Random(seed).next() + step);
  std::vector<std::size_t> positions(batch);
  const std::size_t starts = corpus.symbols.size() - window.context - window.sequence + 1;
  for (std::size_t& position : positions) position = random.below(starts);
  return positions;
}

Examples gatherExamples(const Corpus& corpus, const Window& window, std::span<const std::size_t> positions) {
  Examples examples;
  examples.count = positions.size() * window.sequence;
  examples.contexts.reserve(examples.count * window.context);
  examples.targets.reserve(examples.count);
  for (const std::size_t position : positions) {
    for (std::size_t at = position; at < position + window.sequence; ++at) {
      const auto begin = corpus.symbols.begin() + static_cast<std::ptrdiff_t>(at);
      const auto target = begin + static_cast<std::ptrdiff_t>(window.context);
      examples.contexts.insert(examples.contexts.end(), begin, target);
      examples.targets.push_back(*target);
    }
  }
  return examples;
}

}  // namespace tutti::train
