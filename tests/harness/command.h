// Runs a program as a child process and collects what it said, with a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace tutti::test {

/// Where the project's programs are: bin/, beside the folder of the running test. So both can be moved
/// together.
std::string programFolder();

struct CommandResult {
  int exit_code = -1;      ///< exit status; -1 when a signal ended the program
  int signal = 0;          ///< the signal that ended it, or 0
  bool timed_out = false;  ///< it was killed because the deadline passed
  std::string out;         ///< its standard output
  std::string err;         ///< its standard error
  double seconds = 0;      ///< wall time
};

/// A program that runs in the background. Killed (its whole process group) when destroyed.
class Command {
 public:
  /// Starts `argv` in its own process group, with `environment` added to the caller's. A program name without
  /// a slash is looked up in programFolder() first, then in PATH. Throws std::system_error.
  explicit Command(std::vector<std::string> argv, const std::map<std::string, std::string>& environment = {});
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  int pid() const { return pid_; }
  /// Nothing happens once it has ended. From any thread.
  void kill(int signal) const;

  /// Reads until standard output contains `text` or `limit` passes; true when it was seen.
  bool waitForOutput(const std::string& text, std::chrono::milliseconds limit);
  /// The same of standard error.
  bool waitForError(const std::string& text, std::chrono::milliseconds limit);
  /// Standard output, as far as it was read by then.
  const std::string& output() const { return result_.out; }

  /// Waits for the end; kills the process group at the deadline.
  CommandResult wait(std::chrono::milliseconds limit = std::chrono::seconds(60));

 private:
  bool waitFor(const std::string& text, const int& fd, const std::string& said,
               std::chrono::milliseconds limit);
  bool pump(std::chrono::milliseconds limit);

  std::atomic<int> pid_{-1};
  int out_ = -1;
  int err_ = -1;
  std::chrono::steady_clock::time_point started_;
  CommandResult result_;
};

/// Starts and waits.
CommandResult runCommand(std::vector<std::string> argv,
                         const std::map<std::string, std::string>& environment = {},
                         std::chrono::milliseconds limit = std::chrono::seconds(60));

}  // namespace tutti::test
