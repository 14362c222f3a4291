// One chaos run, drawn from its seed: who takes part, what goes wrong, when, and what must come of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti::test {

/// What happens to a run. In those up to `corrupt` everybody must succeed; in the others all but the victim
/// must get an error that names it.
enum class Chaos : std::uint8_t {
  none,
  compute,       ///< ranks come late to their calls
  pause,         ///< SIGSTOP, and SIGCONT within the deadlines
  cut,           ///< of TCP connections
  delay,         ///< of TCP's bytes
  stall,         ///< of TCP's bytes, for a while
  corrupt,       ///< TCP's bytes, which carry checksums
  kill,          ///< SIGKILL
  kill_joining,  ///< the same while the communicator is being made
  stop,          ///< SIGSTOP for good
  leave,         ///< exit() or _exit() without ncclCommDestroy
  differ,        ///< other arguments on one rank
  abort,         ///< ncclCommAbort from another thread
};
constexpr int kChaosCount = 13;

const char* name(Chaos chaos);
constexpr bool heals(Chaos chaos) { return chaos <= Chaos::corrupt; }

struct ChaosPlan {
  std::uint64_t seed = 0;
  Chaos chaos = Chaos::none;
  int nranks = 2;
  int hosts = 1;
  int victim = 0;
  std::chrono::milliseconds moment{0};  ///< of a signal: after all have joined; kill_joining: after the start
  std::chrono::milliseconds pause{0};   ///< from SIGSTOP to SIGCONT
  std::vector<std::string> arguments;   ///< of all ranks
  std::vector<std::string> victim_arguments;  ///< more
  std::map<std::string, std::string> environment;

  std::string text() const;
};

/// The chaos follows from the seed too: seeds 0, 1, 2, ... go through all kinds.
ChaosPlan drawPlan(std::uint64_t seed);

}  // namespace tutti::test
