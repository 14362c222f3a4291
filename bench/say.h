// Lines of several ranks and threads on standard error, each in one piece.
#pragma once

#include <cstdio>
#include <string>

namespace tutti::perf {

inline void sayError(const std::string& line) {
  const std::string text = line + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tutti::perf
