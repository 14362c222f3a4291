// A program that starts its own ranks.
#pragma once

#include <string>
#include <vector>

namespace tutti::perf {

/// Becomes `tutti-run --no-prefix OPTIONS this-program ARGUMENTS`; the first of `arguments` is skipped, as in
/// argv. tutti-run is taken from beside this program, else from PATH. Throws std::system_error when that
/// fails, and never returns.
[[noreturn]] void becomeLauncher(const std::vector<std::string>& options,
                                 const std::vector<std::string>& arguments);

}  // namespace tutti::perf
