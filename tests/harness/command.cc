#include "tests/harness/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tutti::test {
namespace {

using Clock = std::chrono::steady_clock;

std::system_error systemError(const std::string& what) {
  return std::system_error(errno, std::generic_category(), what);
}

std::string resolve(const std::string& program) {
  const auto built = std::filesystem::path(programFolder()) / program;
  return program.find('/') == std::string::npos && std::filesystem::exists(built) ? built.string() : program;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> mergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(std::string(name).append("=").append(value));
  return result;
}

/// Appends what is readable now; closes the descriptor at the end of file.
void drain(int& fd, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got > 0) {
    into.append(buffer.data(), static_cast<std::size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    ::close(fd);
    fd = -1;
  }
}

}  // namespace

std::string programFolder() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin").string();
}

Command::Command(std::vector<std::string> argv, const std::map<std::string, std::string>& environment) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) throw systemError("pipe2");
  argv[0] = resolve(argv[0]);
  const auto args = pointers(argv);
  auto merged = mergedEnvironment(environment);
  const auto env = pointers(merged);
  started_ = Clock::now();
  pid_ = ::fork();
  if (pid_ < 0) throw systemError("fork");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::execvpe(args[0], args.data(), env.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Command::~Command() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

void Command::kill(int signal) const {
  const int pid = pid_.load();
  if (pid > 0) ::kill(pid, signal);
}

bool Command::pump(std::chrono::milliseconds limit) {
  std::array<pollfd, 2> fds{pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(limit.count())) <= 0) return false;
  if (fds[0].revents != 0) drain(out_, result_.out);
  if (fds[1].revents != 0) drain(err_, result_.err);
  return true;
}

bool Command::waitForOutput(const std::string& text, std::chrono::milliseconds limit) {
  return waitFor(text, out_, result_.out, limit);
}

bool Command::waitForError(const std::string& text, std::chrono::milliseconds limit) {
  return waitFor(text, err_, result_.err, limit);
}

bool Command::waitFor(const std::string& text, const int& fd, const std::string& said,
                      std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (said.find(text) == std::string::npos) {
    if (fd < 0 || Clock::now() >= deadline) return false;
    pump(std::chrono::milliseconds(20));
  }
  return true;
}

CommandResult Command::wait(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  int status = 0;
  bool ended = false;
  while (!ended) {
    if (out_ >= 0 || err_ >= 0) {
      pump(std::chrono::milliseconds(10));
    } else {
      ::usleep(2000);
    }
    ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
    if (!ended && Clock::now() >= deadline) {
      result_.timed_out = true;
      ::kill(-pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      ended = true;
    }
  }
  result_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  // What is still in the pipes; a grandchild that keeps them open does not hold us.
  while ((out_ >= 0 || err_ >= 0) && pump(std::chrono::milliseconds(200))) {
  }
  ::kill(-pid_, SIGKILL);
  pid_ = -1;
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return result_;
}

CommandResult runCommand(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
                         std::chrono::milliseconds limit) {
  return Command(std::move(argv), environment).wait(limit);
}

}  // namespace tutti::test
