#include "tools/run/ending.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>

namespace tutti::run {

std::string signalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string describe(const Ending& ending) {
  if (!ending.by_signal) return fmt::format("exited with status {}", ending.code);
  const char* words = ::sigdescr_np(ending.code);
  return fmt::format("killed by signal {} ({}){}", ending.code, words != nullptr ? words : "real-time",
                     ending.core_dumped ? ", core dumped" : "");
}

std::string rankList(const std::vector<int>& ranks) {
  std::string result = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) result += ", ";
    result += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return result;
}

}  // namespace tutti::run
