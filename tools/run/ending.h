// How a rank's process ended, and how to say it.
#pragma once

#include <string>
#include <vector>

namespace tutti::run {

struct Ending {
  int code = 0;  ///< exit status, or the signal's number
  bool by_signal = false;
  bool core_dumped = false;

  bool failed() const { return by_signal || code != 0; }
  /// As a shell reports it.
  int exitStatus() const { return by_signal ? 128 + code : code; }
};

/// "SIGTERM"; "signal 40" for one without a name.
std::string signalName(int signal);

/// "exited with status 3", "killed by signal 9 (Killed)".
std::string describe(const Ending& ending);

/// "rank 4", "ranks 0-2, 5" for ascending numbers.
std::string rankList(const std::vector<int>& ranks);

}  // namespace tutti::run
