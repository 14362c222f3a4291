#include "bench/traffic.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tutti::perf {
namespace {

constexpr std::size_t kAlignBytes = 16;
constexpr double kMostBytes = 1e15;

std::size_t aligned(double bytes) { return static_cast<std::size_t>(bytes) / kAlignBytes * kAlignBytes; }

/// The number that a text is, if it is one from `least` to `most`.
double numberIn(const std::string& text, const std::string& what, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= least && value <= most)) {
    throw std::invalid_argument(fmt::format("{}: {} is no number from {} to {}", what, text, least, most));
  }
  return value;
}

double environmentNumber(const char* name, double otherwise, double most) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : numberIn(text, name, 0, most);
}

}  // namespace

Traffic Traffic::ofMatrix(const std::string& text, double scale) {
  Traffic traffic(0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::size_t> row;
    for (std::string word; words >> word;) {
      const std::string where = fmt::format("row {}", traffic.matrix_.size());
      row.push_back(aligned(std::floor(numberIn(word, where, 0, kMostBytes) * scale)));
    }
    if (!row.empty()) traffic.matrix_.push_back(std::move(row));
  }
  if (traffic.matrix_.empty()) throw std::invalid_argument("there are no numbers in it");
  for (std::size_t i = 0; i < traffic.matrix_.size(); ++i) {
    if (traffic.matrix_[i].size() == traffic.matrix_.size()) continue;
    throw std::invalid_argument(fmt::format("row {} has {} numbers, where {} rows need as many", i,
                                            traffic.matrix_[i].size(), traffic.matrix_.size()));
  }
  return traffic;
}

Traffic Traffic::fromEnvironment() {
  constexpr const char* kFile = "NCCL_TESTS_ALLTOALLV_MATRIX_FILE";
  const double spread = environmentNumber("NCCL_TESTS_ALLTOALLV_SPREAD", 1, 1);
  const double scale = environmentNumber("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", 1, 1e9);
  const char* path = std::getenv(kFile);
  if (path == nullptr) return Traffic(spread);
  std::ifstream file(path);
  std::ostringstream text;
  if (!(text << file.rdbuf())) {
    throw std::invalid_argument(fmt::format("{}: cannot read {}: {}", kFile, path, std::strerror(errno)));
  }
  try {
    return ofMatrix(text.str(), scale);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("{}: {}: {}", kFile, path, error.what()));
  }
}

std::size_t Traffic::bytes(int from, int to, int nranks, std::size_t total_bytes) const {
  if (!matrix_.empty()) return matrix_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  const auto total = static_cast<double>(total_bytes);
  if (nranks == 1) return aligned(total);
  const double n = nranks;
  const double distance = (to - from + nranks) % nranks;
  const double by_distance = distance / (n * (n - 1) / 2);
  return aligned(total * ((1 - spread_) / n + spread_ * by_distance));
}

}  // namespace tutti::perf
