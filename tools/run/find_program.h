// Where the program to run is.
#pragma once

#include <stdexcept>
#include <string>

namespace tutti::run {

/// PROGRAM cannot be run; `exitStatus()` is what a shell would end with: 127 not found, 126 not executable.
class NotRunnable : public std::runtime_error {
 public:
  NotRunnable(int exit_status, const std::string& message)
      : std::runtime_error(message), exit_status_(exit_status) {}
  int exitStatus() const noexcept { return exit_status_; }

 private:
  int exit_status_;
};

/// The path of `name`. A name with a slash is that path; another is looked for next to this executable first,
/// then in PATH. When this executable's directory is in PATH, the order of PATH decides: a system-wide
/// install must not hide the interpreter of an activated virtual environment. Throws NotRunnable.
std::string findProgram(const std::string& name);

/// The NotRunnable for an execve that failed with `error` (an errno).
NotRunnable execFailed(const std::string& path, int error);

}  // namespace tutti::run
