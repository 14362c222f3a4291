// Text as training data: bytes mapped to a dense vocabulary, and batches that are a pure function of
// (seed, step), so that every rank draws the same batch without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::train {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). The
/// standard library's distributions differ between implementations; these conversions do not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// 64 uniform bits.
  std::uint64_t next();
  /// Uniform in [0, bound), without modulo bias. bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [-limit, limit), from 53 bits.
  double symmetric(double limit);

 private:
  std::uint64_t state_;
};

/// A text as symbol numbers 0 .. vocabulary - 1, numbered in ascending order of their byte.
struct Corpus {
  std::string path;
  std::vector<std::uint8_t> symbols;
  std::size_t vocabulary = 0;  ///< distinct bytes, 1 to 256
  std::uint64_t hash = 0;      ///< XXH3 of the file's bytes
};

/// Numbers the distinct bytes of `bytes`.
Corpus makeCorpus(std::string path, std::span<const std::uint8_t> bytes);

/// A sequence is a run of `context` symbols and the `sequence` that follow; each of these is one example, to
/// be predicted from the `context` symbols before it.
struct Window {
  std::size_t context = 0;
  std::size_t sequence = 1;
};

/// Reads `path`. Throws UsageError when it cannot be read, is a directory or empty, or is too short for one
/// sequence.
Corpus loadCorpus(const std::string& path, const Window& window);

/// A licence text that every Debian system has. Throws UsageError when there is none.
std::string defaultDataPath();

/// `count` examples: contexts is [count x context], targets is [count], both symbol numbers.
struct Examples {
  std::size_t count = 0;
  std::vector<std::uint8_t> contexts;
  std::vector<std::uint8_t> targets;
};

/// Start positions of the `batch` sequences of a step, drawn with replacement.
std::vector<std::size_t> batchPositions(const Corpus& corpus, const Window& window, std::size_t batch,
                                        std::uint64_t seed, std::size_t step);

/// The examples of the sequences at `positions`: window.sequence of each.
Examples gatherExamples(const Corpus& corpus, const Window& window, std::span<const std::size_t> positions);

}  // namespace tutti::train
