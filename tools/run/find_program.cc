#include "tools/run/find_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

namespace tutti::run {
namespace {

namespace fs = std::filesystem;

constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;

enum class Found { nothing, not_executable, program };

Found look(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Found::nothing;
  const bool runnable = fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  return runnable ? Found::program : Found::not_executable;
}

std::vector<fs::path> pathDirectories() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  std::vector<fs::path> result;
  for (;;) {
    const auto colon = rest.find(':');
    const auto name = rest.substr(0, colon);
    result.emplace_back(name.empty() ? "." : name);  // as in execvp, an empty entry is the current directory
    if (colon == std::string_view::npos) return result;
    rest.remove_prefix(colon + 1);
  }
}

std::vector<fs::path> searchDirectories() {
  auto result = pathDirectories();
  std::error_code ignored;
  const auto own = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto is_own = [&](const fs::path& directory) { return fs::equivalent(directory, own, ignored); };
  if (!own.empty() && std::none_of(result.begin(), result.end(), is_own)) result.insert(result.begin(), own);
  return result;
}

NotRunnable notFound(const std::string& name) {
  const auto where = name.find('/') == std::string::npos ? " next to tutti-run or in PATH" : "";
  return {kNotFound, fmt::format("'{}' was not found{}", name, where)};
}

NotRunnable notExecutable(const std::string& path) {
  return {kNotExecutable, fmt::format("'{}' is not an executable file", path)};
}

}  // namespace

std::string findProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    const auto found = look(name);
    if (found == Found::nothing) throw notFound(name);
    if (found == Found::not_executable) throw notExecutable(name);
    return name;
  }
  std::string refused;
  for (const auto& directory : searchDirectories()) {
    const auto path = directory / name;
    const auto found = look(path);
    if (found == Found::program) return path.string();
    // A directory of that name is nothing that a user meant to run.
    if (found == Found::not_executable && refused.empty() && !fs::is_directory(path)) refused = path.string();
  }
  if (!refused.empty()) throw notExecutable(refused);
  throw notFound(name);
}

NotRunnable execFailed(const std::string& path, int error) {
  const auto reason = std::generic_category().message(error);
  if (error != ENOENT) {
    return {kNotExecutable, fmt::format("cannot execute '{}': {}", path, reason)};
  }
  return {kNotFound,
          fmt::format("cannot execute '{}': {}; is the interpreter it names there?", path, reason)};
}

}  // namespace tutti::run
