#include "tools/run/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>

#include "runtime/core/cpu_affinity.h"
#include "tools/run/cores.h"
#include "tools/run/find_program.h"
#include "tools/run/placement.h"

namespace tutti::run {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe makePipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) throw systemError("pipe2");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// What a child that cannot start its program tells its parent. `step` points to a literal, which both have;
/// nullptr means execve.
struct ChildFailure {
  const char* step;
  int error;
};

/// All that a child needs, made before the fork: between fork and exec only system calls are allowed.
struct Child {
  const char* path;
  char* const* arguments;
  char* const* environment;
  const ProcessSetup* setup;
  pid_t launcher;
  std::span<const int> cores;  ///< empty: any
  int in, out, err, gate, failure;
};

[[noreturn]] void fail(const Child& child, const char* step) {
  const ChildFailure failure{step, errno};
  [[maybe_unused]] const auto told = ::write(child.failure, &failure, sizeof(failure));
  ::_exit(1);
}

/// Until the launcher lets it through; it ends where the launcher gives up.
void passGate(const Child& child) {
  char go = 0;
  ssize_t got = 0;
  do {
    got = ::read(child.gate, &go, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) ::_exit(1);
}

[[noreturn]] void becomeProgram(const Child& child) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(child, "prctl");
  if (::getppid() != child.launcher) ::_exit(1);  // it died before prctl could tell us
  if (::setpgid(0, 0) != 0) fail(child, "setpgid");
  passGate(child);
  if (!child.cores.empty() && !bindThread(child.cores)) fail(child, "sched_setaffinity");
  if (::dup2(child.in, STDIN_FILENO) < 0 || ::dup2(child.out, STDOUT_FILENO) < 0 ||
      ::dup2(child.err, STDERR_FILENO) < 0) {
    fail(child, "dup2");
  }
  child.setup->restoreInChild();
  ::execve(child.path, child.arguments, child.environment);
  fail(child, nullptr);
}

std::vector<std::string> environmentOf(const LaunchPlan& plan, int rank) {
  const auto number = fmt::format("{}", rank);
  const auto count = fmt::format("{}", plan.ranks);
  const Place place = placeOf(rank, plan.ranks, plan.hosts.value_or(1));
  const auto host = fmt::format("{}", place.host);
  std::map<std::string_view, std::string> ours = {
      {"TUTTI_RANK", number},
      {"TUTTI_WORLD_SIZE", count},
      {"TUTTI_ID_FILE", plan.id_file},
      {"RANK", number},
      {"WORLD_SIZE", count},
      {"LOCAL_RANK", fmt::format("{}", place.local_rank)},
      {"LOCAL_WORLD_SIZE", fmt::format("{}", place.local_ranks)},
      {"NODE_RANK", host},
      {"GROUP_RANK", host},
      // The launcher's rendezvous has that port; one that a rank opens for itself could not.
      {"TUTTI_BOOTSTRAP_PORT", ""},
  };
  if (plan.hosts) ours["NCCL_HOSTID"] = hostName(place.host);
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!ours.contains(text.substr(0, text.find('=')))) result.emplace_back(text);
  }
  for (const auto& [name, value] : ours) {
    if (!value.empty()) result.push_back(fmt::format("{}={}", name, value));
  }
  return result;
}

std::vector<char*> pointersTo(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (auto& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

void openGate(const UniqueFd& gate) {
  const char go = 1;
  if (::write(gate.get(), &go, 1) != 1) throw systemError("write to a rank's pipe");
}

/// Waits until the child has become the program: exec closes the pipe. Throws what kept it from that.
void awaitExec(int failure_pipe, const LaunchPlan& plan, int rank) {
  ChildFailure failure{};
  ssize_t got = 0;
  do {
    got = ::read(failure_pipe, &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof(failure))) return;
  if (failure.step == nullptr) throw execFailed(plan.path, failure.error);
  throw std::system_error(failure.error, std::generic_category(),
                          fmt::format("cannot start rank {}: {}", rank, failure.step));
}

void reap(pid_t pid) {
  // The leader is not reaped yet, so no other group can have this number.
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);  // in case it is not in its group yet
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void setNonBlocking(const UniqueFd& fd) {
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) throw systemError("fcntl");
}

}  // namespace

RankProcess::RankProcess(const LaunchPlan& plan, const ProcessSetup& setup, int rank, const Watch& watch) {
  auto arguments = plan.arguments;
  auto environment = environmentOf(plan, rank);
  const auto argv = pointersTo(arguments);
  const auto envp = pointersTo(environment);
  auto out = makePipe();
  auto err = makePipe();
  auto gate = makePipe();
  auto failure = makePipe();
  setNonBlocking(out.read);
  setNonBlocking(err.read);
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) throw systemError("open /dev/null");
  const auto turn = static_cast<std::size_t>(rank);
  const std::span<const int> cores = plan.cores.empty() ? std::span<const int>() : plan.cores[turn];
  const Child child{plan.path.c_str(), argv.data(),     envp.data(),        &setup,
                    ::getpid(),        cores,           null.get(),         out.write.get(),
                    err.write.get(),   gate.read.get(), failure.write.get()};

  const pid_t pid = ::fork();
  if (pid < 0) throw systemError(fmt::format("cannot start rank {}: fork", rank));
  if (pid == 0) {
    gate.write.reset();  // or it would wait for itself
    becomeProgram(child);
  }
  try {
    failure.write.reset();
    // Through syscall(): glibc 2.36 declares pidfd_open without C linkage. The kernel makes it close-on-exec.
    pid_fd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pid_fd_) throw systemError("pidfd_open");
    watch(pid_fd_.get());
    openGate(gate.write);
    awaitExec(failure.read.get(), plan, rank);
  } catch (...) {
    reap(pid);
    throw;
  }
  pid_ = pid;
  out_ = std::move(out.read);
  err_ = std::move(err.read);
}

RankProcess::~RankProcess() {
  if (pid_ > 0) reap(pid_);
}

void RankProcess::signalGroup(int signal) const { ::kill(-pid_, signal); }

std::optional<Ending> RankProcess::ending() const {
  siginfo_t info{};
  const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (result != 0) throw systemError("waitid");
  if (info.si_pid != pid_) return std::nullopt;
  const bool by_signal = info.si_code != CLD_EXITED;
  return Ending{info.si_status, by_signal, info.si_code == CLD_DUMPED};
}

}  // namespace tutti::run
