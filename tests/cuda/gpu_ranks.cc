// gpu_ranks SCENARIO BOARD NRANKS [RANK]: one rank, or all of them as threads of this process.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/scenarios.h"

extern "C" tutti::Accelerator* tuttiOpenAccelerator(const char* version);

namespace tutti::test {
namespace {

bool runRank(const std::string& scenario, Board& board, int rank, int nranks) {
  try {
    Accelerator* accelerator = tuttiOpenAccelerator(kAcceleratorVersion);
    if (accelerator == nullptr) throw std::runtime_error("no accelerator of this version");
    const auto wait_limit = std::chrono::seconds(scenario == "deadline" ? 1 : 60);
    TestRank mine(*accelerator, board, rank, nranks, wait_limit);
    runScenario(scenario, mine);
    mine.finish();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    board.fail();
    return false;
  }
}

}  // namespace

void runScenario(const std::string& name, TestRank& rank) {
  static const std::map<std::string, void (*)(TestRank&)> kScenarios{{"collectives", collectives},
                                                                     {"transfers", transfers},
                                                                     {"two_streams", twoStreams},
                                                                     {"graph_replays", graphReplays},
                                                                     {"captured_fork", capturedFork},
                                                                     {"woken_replays", wokenReplays},
                                                                     {"registered", registeredBuffers},
                                                                     {"own_memory", ownMemory},
                                                                     {"foreign_memory", foreignMemory},
                                                                     {"stopped", stopped},
                                                                     {"mismatch", mismatch},
                                                                     {"unreceived", unreceived},
                                                                     {"deadline", deadline}};
  const auto found = kScenarios.find(name);
  require(found != kScenarios.end(), "no scenario " + name);
  found->second(rank);
}

}  // namespace tutti::test

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const tutti::test::SharedBoard shared(argv[2]);
  const int nranks = std::atoi(argv[3]);
  if (argc > 4) return tutti::test::runRank(argv[1], *shared, std::atoi(argv[4]), nranks) ? 0 : 1;
  std::vector<std::thread> ranks;
  ranks.reserve(static_cast<std::size_t>(nranks));
  std::vector<char> passed(static_cast<std::size_t>(nranks));
  for (int rank = 0; rank < nranks; ++rank) {
    ranks.emplace_back([&, rank] {
      passed[static_cast<std::size_t>(rank)] = tutti::test::runRank(argv[1], *shared, rank, nranks) ? 1 : 0;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const char each : passed) {
    if (each == 0) return 1;
  }
  return 0;
}
