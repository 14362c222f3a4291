// What the program prints: one JSON object per line on standard output, for whoever makes a report of it.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tutti::gpu_bench {

using Json = nlohmann::ordered_json;

inline void printLine(const Json& line) {
  std::fputs((line.dump() + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace tutti::gpu_bench
