#include "tools/run/process_setup.h"

#include <fcntl.h>
#include <sys/signalfd.h>

namespace tutti::run {
namespace {

void openStandardDescriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    // open() takes the lowest free number, which is `fd` as all below are in use.
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) throw systemError("open /dev/null");
  }
}

sigset_t forwardedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

/// Returns what it was.
struct sigaction setDisposition(int signal, sighandler_t disposition) {
  struct sigaction wanted {};
  struct sigaction original {};
  wanted.sa_handler = disposition;
  ::sigaction(signal, &wanted, &original);
  return original;
}

}  // namespace

ProcessSetup::ProcessSetup() {
  openStandardDescriptors();

  const sigset_t forwarded = forwardedSignals();
  if (::sigprocmask(SIG_BLOCK, &forwarded, &original_mask_) != 0) throw systemError("sigprocmask");
  signal_fd_ = UniqueFd(::signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signal_fd_) throw systemError("signalfd");

  original_sigpipe_ = setDisposition(SIGPIPE, SIG_IGN);
  original_sigchld_ = setDisposition(SIGCHLD, SIG_DFL);

  if (::getrlimit(RLIMIT_NOFILE, &original_files_) != 0) throw systemError("getrlimit");
  rlimit raised = original_files_;
  raised.rlim_cur = raised.rlim_max;
  // Refused in some sandboxes; a descriptor that is missing later says so itself.
  ::setrlimit(RLIMIT_NOFILE, &raised);
}

void ProcessSetup::restoreInChild() const noexcept {
  ::setrlimit(RLIMIT_NOFILE, &original_files_);
  ::sigaction(SIGPIPE, &original_sigpipe_, nullptr);
  ::sigaction(SIGCHLD, &original_sigchld_, nullptr);
  ::sigprocmask(SIG_SETMASK, &original_mask_, nullptr);
}

}  // namespace tutti::run
