// The corpus of the fuzz targets, and mutations of it by seed: what libFuzzer does for minutes, for a moment,
// with any compiler.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/topology/fuzz/properties.h"

namespace tutti::test {
namespace {

constexpr int kMutationsPerFormat = 1000;

struct Format {
  const char* folder;
  void (*check)(std::string_view text);
};
constexpr Format kFormats[] = {{"nccl", checkNcclXml}, {"hwloc", checkHwlocXml}, {"graph", checkGraphXml}};

std::vector<std::string> corpusOf(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_FUZZ_CORPUS "/" + folder)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(const std::vector<std::string>& corpus) {
    std::string text = corpus[below(corpus.size())];
    for (std::size_t i = 1 + below(4); i > 0; --i) change(text, corpus[below(corpus.size())]);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void change(std::string& text, const std::string& other) {
    const std::size_t at = below(text.size());
    const std::size_t length = below(40);
    switch (below(7)) {
      case 0:
        text[at] = static_cast<char>(random_());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), length));
        break;
      case 4:
        text.insert(at, other.substr(below(other.size()), below(400)));
        break;
      default:
        replaceValue(text, at);
    }
    if (text.empty()) text = other;
  }

  /// Of the attribute that follows.
  void replaceValue(std::string& text, std::size_t at) {
    static const char* const kValues[] = {
        "",    "0", "-1",  "1",        "255",      "4294967296",   "99999999999999999999", "0x", "1e308",
        "nan", "x", " 7 ", "0x030200", "0x068000", "0000:22:00.0", "ffff,ffffffff",        "0-9"};
    const std::size_t open = text.find('"', at);
    const std::size_t close = open == std::string::npos ? open : text.find('"', open + 1);
    if (close == std::string::npos) return;
    text.replace(open + 1, close - open - 1, kValues[below(std::size(kValues))]);
  }

  std::mt19937 random_;
};

class Mutations : public ::testing::TestWithParam<Format> {};

TEST_P(Mutations, TheCorpusHolds) {
  const std::vector<std::string> corpus = corpusOf(GetParam().folder);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& text : corpus) EXPECT_NO_THROW(GetParam().check(text)) << text;
}

TEST_P(Mutations, AnyBytesAreReadOrRefused) {
  const std::vector<std::string> corpus = corpusOf(GetParam().folder);
  for (unsigned seed = 1; seed <= kMutationsPerFormat; ++seed) {
    const std::string text = Mutator(seed).mutate(corpus);
    ASSERT_NO_THROW(GetParam().check(text)) << "seed " << seed << ":\n" << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Mutations, ::testing::ValuesIn(kFormats),
                         [](const auto& test) { return std::string(test.param.folder); });

}  // namespace
}  // namespace tutti::test
