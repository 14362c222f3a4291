// What the launcher changes about its own process, and how a child gets it back.
#pragma once

#include <sys/resource.h>

#include <csignal>

#include "tools/run/unique_fd.h"

namespace tutti::run {

/// Makes standard descriptors, signals and limits fit for the launcher, for the rest of the process's life:
///   - 0, 1 and 2 are open, so that no descriptor of ours can take their place;
///   - the signals it forwards are blocked and arrive at signalFd(); one that was ignored when the process
///     started (nohup) stays ignored;
///   - SIGPIPE is ignored (writes fail with EPIPE), and SIGCHLD is not (children stay until we ask);
///   - as many descriptors as the hard limit allows.
/// Must be built before any thread is started, which then inherits the blocked signals.
class ProcessSetup {
 public:
  /// Throws std::system_error.
  ProcessSetup();

  /// Non-blocking; yields signalfd_siginfo.
  int signalFd() const { return signal_fd_.get(); }

  /// Gives a child what this process was started with. Async-signal-safe, for use between fork and exec.
  void restoreInChild() const noexcept;

 private:
  sigset_t original_mask_{};
  struct sigaction original_sigpipe_ {};
  struct sigaction original_sigchld_ {};
  rlimit original_files_{};
  UniqueFd signal_fd_;
};

}  // namespace tutti::run
