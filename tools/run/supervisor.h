// Runs the ranks from their start to the end of the last one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/options.h"
#include "tools/run/output_queue.h"
#include "tools/run/rank_process.h"
#include "tools/run/rank_stream.h"

namespace tutti::run {

/// One thread that sleeps until a rank writes, a rank ends, a signal arrives or a deadline passes.
///
///   all run ──a rank fails──▶ the others end by themselves ──kill_after──▶ SIGTERM ──grace──▶ SIGKILL
///      └────a stop signal────▶ it is passed on ────────────────────────────────────grace──▶ SIGKILL
class Supervisor {
 public:
  /// `setup` must outlive the object.
  Supervisor(const Options& options, const ProcessSetup& setup);

  /// Starts all ranks and returns the launcher's exit status when they have ended and their output is
  /// written. Throws NotRunnable or std::system_error; no rank is left then.
  int run(const LaunchPlan& plan);

 private:
  using Clock = std::chrono::steady_clock;
  struct Rank {
    Rank(std::unique_ptr<RankProcess> p, RankStream o, RankStream e)
        : process(std::move(p)), out(std::move(o)), err(std::move(e)) {}
    std::unique_ptr<RankProcess> process;
    RankStream out;
    RankStream err;
    std::optional<Ending> ending;
    int stopped_with = 0;  ///< the last signal that we sent to make it end
  };

  void start(const LaunchPlan& plan);
  void watch(int epoll, int fd, std::uint64_t key) const;
  void sleep() const;
  int sleepLimit() const;
  void handleControl();
  void handleOutput();
  void handleDeadlines();
  void handleSignals();
  void handleEnd(int rank);
  void handleStop(int signal);
  void stopRunning(int signal);
  void closeStreams();
  bool streamsOpen() const;
  std::vector<int> runningRanks() const;
  void writeRest();
  void sayWhatIsLost();
  void say(const std::string& text);
  void sayFirstFailure();
  void saySummary();

  const Options& options_;
  const ProcessSetup& setup_;
  UniqueFd control_;  ///< epoll: signals, and process ends in the order in which they happened
  UniqueFd out_;      ///< epoll: the pipes of standard output; left alone while the queue for it is full
  UniqueFd err_;      ///< the same for standard error
  OutputQueue queue_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  int running_ = 0;
  std::optional<int> first_failed_;
  int stop_signal_ = 0;         ///< the first that we were asked to stop with
  bool stopped_early_ = false;  ///< it came before any failure
  bool abandon_output_ = false;
  bool is_output_lost_ = false;
  std::optional<Clock::time_point> term_at_;
  std::optional<Clock::time_point> kill_at_;
  std::optional<Clock::time_point> close_at_;  ///< no rank runs, but something holds their pipes
};

}  // namespace tutti::run
