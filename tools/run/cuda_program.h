// Whether a program can run on emulated GPUs, as far as its file tells.
#pragma once

#include <string>
#include <vector>

namespace tutti::run {

struct Verdict {
  std::string refusal;                ///< why it cannot be run, and what to do; empty: it can
  std::vector<std::string> warnings;  ///< what in it will fail
};

/// A program that is no ELF file, such as a script, is let pass.
Verdict judgeForEmulation(const std::string& path);

}  // namespace tutti::run
