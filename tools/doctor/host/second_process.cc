#include "tools/doctor/host/second_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <system_error>
#include <utility>

namespace tutti::doctor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{10};

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends makePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace

bool SecondProcess::Pipe::send(std::span<const std::byte> bytes) const {
  // Small, so that a pipe holds it.
  return ::write(out_.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

bool SecondProcess::Pipe::receive(std::span<std::byte> bytes) const {
  const auto end = Clock::now() + kLimit;
  while (!bytes.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd ready{in_.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
    const ssize_t got = ::read(in_.get(), bytes.data(), bytes.size());
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

SecondProcess::SecondProcess(const std::function<void(const Pipe&)>& work) {
  Ends down = makePipe();
  Ends up = makePipe();
  ::signal(SIGPIPE, SIG_IGN);  // a process that is gone is told by write()
  const int parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ != 0) {
    pipe_.emplace(std::move(up.read), std::move(down.write));
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  up.read = {};
  down.write = {};
  try {
    work(Pipe(std::move(down.read), std::move(up.write)));
  } catch (const std::exception&) {
    ::_exit(1);  // the parent sees that nothing comes
  }
  ::_exit(0);
}

SecondProcess::~SecondProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace tutti::doctor
