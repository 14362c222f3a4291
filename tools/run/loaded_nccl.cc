#include "tools/run/loaded_nccl.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "nccl.h"
#include "tools/run/elf_file.h"
#include "tools/run/unique_fd.h"

namespace tutti::run {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kNccl = "libnccl.so.2";
/// Of Tutti's libraries (runtime/loaded_twice.cc).
constexpr const char* kMark = ".tutti";
constexpr std::chrono::seconds kPatience{10};

/// What comes until the writer ends or the deadline passes.
std::string readUntil(int fd, Clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) return {};
    const ssize_t got = ::read(fd, part.data(), part.size());
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

/// With a value for `variable` of this process's environment, which it has for the child only.
std::vector<std::string> environmentWith(std::string_view variable, const std::string& value) {
  std::vector<std::string> result;
  const std::string start = fmt::format("{}=", variable);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (variable.empty() || !std::string_view(*entry).starts_with(start)) result.emplace_back(*entry);
  }
  if (!variable.empty()) result.push_back(start + value);
  return result;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// What the dynamic linker would load, a line each; empty where it does not say.
std::string librariesOf(const std::string& linker, const std::string& program,
                        std::vector<std::string> environment) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> arguments{linker, "--list", program};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, linker.c_str(), &actions, nullptr, pointersTo(arguments).data(),
                                  pointersTo(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  theirs.reset();
  if (error != 0) return {};
  std::string text = readUntil(ours.get(), Clock::now() + kPatience);
  ::kill(pid, SIGKILL);  // it has ended, or hangs
  ::waitpid(pid, nullptr, 0);
  return text;
}

/// The path of the first libnccl, whose functions count; "not found"; empty where there is none. Lines are
/// NAME => PATH (0x...), NAME => not found, or PATH (0x...) for what is needed or preloaded by its path.
std::string ncclIn(const std::string& libraries) {
  std::istringstream lines(libraries);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view text =
        std::string_view(line).substr(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string_view entry = text.substr(0, text.rfind(" (0x"));
    const std::size_t arrow = entry.find(" => ");
    const std::string name(entry.substr(0, arrow));
    if (!fs::path(name).filename().string().starts_with("libnccl.so")) continue;
    return arrow == std::string_view::npos ? name : std::string(entry.substr(arrow + 4));
  }
  return {};
}

/// Beside the library that this program has loaded; empty where there is none.
std::string ownNccl() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&ncclGetUniqueId), &info) == 0) return {};
  std::error_code error;
  const fs::path own = fs::canonical(info.dli_fname, error).parent_path() / kNccl;
  return !error && fs::exists(own, error) ? own.string() : "";
}

bool isTuttis(const std::string& path) {
  const auto file = readElf(path);
  return file && file->hasSection(kMark);
}

std::string withOld(const char* variable, const std::string& value) {
  const char* const old = std::getenv(variable);
  return old != nullptr && *old != '\0' ? fmt::format("{}:{}", value, old) : value;
}

}  // namespace

std::string warningOfOtherNccl(const std::string& program) {
  const auto file = readElf(program);
  if (!file || file->interpreter.empty()) return {};
  const auto found = [&](std::string_view variable, const std::string& value) {
    return ncclIn(librariesOf(file->interpreter, program, environmentWith(variable, value)));
  };
  const std::string loaded = found({}, {});
  if (loaded.empty() || isTuttis(loaded)) return {};
  const bool is_found = fs::path(loaded).is_absolute();
  std::string warning = is_found ? fmt::format("'{}' will load {}, which is not Tutti's", program, loaded)
                                 : fmt::format("'{}' needs {}, which will not be found", program, kNccl);
  const std::string own = ownNccl();
  if (own.empty()) return warning;
  const std::string folders = withOld("LD_LIBRARY_PATH", fs::path(own).parent_path().string());
  if (isTuttis(found("LD_LIBRARY_PATH", folders)))
    return fmt::format("{}. For Tutti's set LD_LIBRARY_PATH={}", warning, folders);
  // Not for tutti-run, which has another library with NCCL's functions.
  const std::string first = withOld("LD_PRELOAD", own);
  if (isTuttis(found("LD_PRELOAD", first))) {
    return fmt::format(
        "{}: its RPATH, or the path that it was linked by, comes before LD_LIBRARY_PATH. For "
        "Tutti's link it without that, or put env LD_PRELOAD={} before its name",
        warning, first);
  }
  return warning;
}

}  // namespace tutti::run
