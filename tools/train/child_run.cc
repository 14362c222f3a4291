#include "tools/train/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

std::system_error systemError(const std::string& what) { return {errno, std::generic_category(), what}; }

/// Becomes the program; only system calls, because this runs between fork and exec.
[[noreturn]] void becomeProgram(const char* path, char* const* arguments, pid_t parent) {
  // tutti-run passes the signal on to its ranks.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it died before prctl could tell us
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  ::execv(path, arguments);
  ::_exit(127);
}

}  // namespace

void runOnRanks(std::size_t ranks, const std::vector<std::string>& arguments) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  const std::string launcher = self.parent_path() / "tutti-run";
  if (::access(launcher.c_str(), X_OK) != 0) {
    throw systemError(fmt::format("--scaling starts its ranks with {}", launcher));
  }
  std::vector<std::string> words{launcher, "-n", std::to_string(ranks), self.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw systemError("fork");
  if (child == 0) becomeProgram(launcher.c_str(), pointers.data(), parent);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw systemError("waitpid");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw std::runtime_error(fmt::format("--scaling: the run on {} rank{} ended with {} {}", ranks,
                                       ranks == 1 ? "" : "s", WIFEXITED(status) ? "exit status" : "signal",
                                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
}

ScratchFile::ScratchFile() : fd_(::memfd_create("tutti-train", MFD_CLOEXEC)) {
  if (fd_ < 0) throw systemError("memfd_create");
}

ScratchFile::~ScratchFile() { ::close(fd_); }

std::string ScratchFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_); }

std::string ScratchFile::content() const {
  std::string text;
  std::array<char, 65536> block{};
  ssize_t got = 0;
  while ((got = ::pread(fd_, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  if (got < 0) throw systemError("reading what a run wrote");
  return text;
}

}  // namespace tutti::train
