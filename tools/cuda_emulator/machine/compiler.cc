#include "tools/cuda_emulator/machine/compiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>

#include "tools/cuda_emulator/machine/memory_check.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

/// As the kernels were written: no contraction, no reordering of floats, signed overflow wraps, and memory is
/// what its bytes are. -O1: modules are long and compiled once per machine.
const Arguments& options() {
  static const Arguments all = [] {
    Arguments options {
      "-std=c++20", "-O1", "-fPIC", "-w", "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
          "-fno-math-errno", "-fvisibility=hidden", "-fno-stack-protector",
#if defined(__SANITIZE_THREAD__)
          "-fsanitize=thread"
#endif
    };
    if (memoryIsChecked()) options.push_back("-DTUTTI_CHECKED_MEMORY");
    return options;
  }();
  return all;
}

std::string inPath(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = fmt::format("{}/{}", folder, program);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

std::string findCompiler() {
  const char* chosen = std::getenv("TUTTI_EMULATOR_CXX");
  if (chosen != nullptr && *chosen != '\0') {
    std::string found = inPath(chosen);
    if (!found.empty() && access(found.c_str(), X_OK) == 0) return found;
    throw Error(ncclSystemError, fmt::format("TUTTI_EMULATOR_CXX={}: no such program", chosen));
  }
  for (const char* name : {"g++", "c++"}) {
    if (std::string found = inPath(name); !found.empty()) return found;
  }
  throw Error(
      ncclSystemError,
      "kernels are compiled for this machine when they first run, which takes a C++ compiler; neither g++ "
      "nor c++ is in PATH: install one, or name it in TUTTI_EMULATOR_CXX");
}

std::string firstLines(const fs::path& log) {
  std::ifstream file(log);
  std::string text;
  std::string line;
  for (int i = 0; i < 8 && std::getline(file, line); ++i) text += "\n" + line;
  return text;
}

/// Runs the compiler; what it says goes to `log`.
void runCompiler(Arguments arguments, const fs::path& log) {
  arguments.insert(arguments.begin(), findCompiler());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw Error(ncclSystemError, fmt::format("cannot run {}: {}", arguments[0], std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) {
    throw Error(ncclInternalError,
                fmt::format("{} could not compile the translated kernels:{}", arguments[0], firstLines(log)));
  }
}

Arguments with(Arguments arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
  return arguments;
}

/// Compiles each source into an object beside it, in this thread and one more.
void compileAll(const std::vector<fs::path>& sources) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < sources.size(); i = next++) {
        const std::string object = sources[i].string() + ".o";
        runCompiler(with(options(), {"-c", sources[i], "-o", object}), sources[i].string() + ".log");
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = sources.size();
    }
  };
  std::thread helper(work);
  work();
  helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::string compilerIdentity() {
  const std::string path = findCompiler();
  struct stat file {};
  stat(path.c_str(), &file);
  std::string identity = fmt::format("{} {} {}", path, file.st_size, file.st_mtim.tv_sec);
  for (const std::string& option : options()) identity += ' ' + option;
  return identity;
}

void compileShared(const std::vector<fs::path>& sources, const fs::path& object) {
  Arguments arguments = with(options(), {"-shared", "-o", object});
  if (sources.size() == 1) {
    arguments.push_back(sources.front());
  } else {
    compileAll(sources);
    for (const fs::path& source : sources) arguments.push_back(source.string() + ".o");
  }
  runCompiler(arguments, object.string() + ".log");
}

}  // namespace tutti::emulator
