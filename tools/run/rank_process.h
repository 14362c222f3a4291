// The process of one rank.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/ending.h"
#include "tools/run/process_setup.h"
#include "tools/run/unique_fd.h"

namespace tutti::run {

/// What all ranks have in common.
struct LaunchPlan {
  std::string path;                    ///< the executable
  std::vector<std::string> arguments;  ///< argv, the program's name as the user wrote it first
  int ranks = 1;
  std::optional<int>
      hosts;  ///< that the ranks are divided among; absent: they are on this one, under its own name
  std::string id_file;
  std::vector<std::vector<int>> cores;  ///< by rank; empty: wherever the scheduler likes
};

/// A started rank: leader of its own process group, standard input /dev/null, output into pipes. It stays a
/// zombie until the object goes, so that its pid keeps naming its group, which is signalled until then.
/// The kernel kills it when this process dies.
class RankProcess {
 public:
  using Watch = std::function<void(int pid_fd)>;

  /// Returns when the program runs. `watch` is called before it does, with pidFd(): no rank can end, and no
  /// other as a consequence, before its end is watched. Must be called from the main thread: a parent's death
  /// is that of the thread that forked. Throws NotRunnable or std::system_error.
  RankProcess(const LaunchPlan& plan, const ProcessSetup& setup, int rank, const Watch& watch);
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  /// Kills what is left of the group and reaps.
  ~RankProcess();

  int pid() const { return pid_; }
  /// Becomes readable when the process has ended.
  int pidFd() const { return pid_fd_.get(); }
  /// The non-blocking read ends, to be taken once.
  UniqueFd takeOut() { return std::move(out_); }
  UniqueFd takeErr() { return std::move(err_); }

  /// To the rank and whatever it started that is still in its group.
  void signalGroup(int signal) const;

  /// How it ended; nothing while it runs.
  std::optional<Ending> ending() const;

 private:
  int pid_ = -1;
  UniqueFd pid_fd_;
  UniqueFd out_;
  UniqueFd err_;
};

}  // namespace tutti::run
