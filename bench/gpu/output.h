// What the program prints: one JSON object per line on standard output, for whoever makes a report of it.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tutti::gpu_bench {

using Json = nlohmann::ordered_json;

/// Throws std::runtime_error where it cannot be written.
inline void printLine(const Json& line) {
  const bool is_written = std::fputs((line.dump() + "\n").c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!is_written) throw std::runtime_error("cannot write to standard output");
}

}  // namespace tutti::gpu_bench
