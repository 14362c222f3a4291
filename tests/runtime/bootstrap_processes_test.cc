// The bootstrap with a process per rank: how many sockets each needs, and what becomes of ranks that wait
// when a process dies.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/process.h"
#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"
#include "tests/harness/sockets.h"

namespace tutti {
namespace {

using std::chrono::seconds;

class Ranks {
 public:
  explicit Ranks(int nranks) : nranks_(nranks) {
    Process::instance();  // starts libsodium
    const ncclUniqueId id = openRendezvous({.init_timeout = seconds(100), .is_for_this_process = true});
    std::ofstream(path(), std::ios::binary).write(id.internal, sizeof(id.internal));
  }

  void start(int rank, const std::map<std::string, std::string>& environment = {}) {
    commands_.push_back(std::make_unique<test::Command>(
        std::vector<std::string>{"bootstrap_program", path(), std::to_string(nranks_), std::to_string(rank)},
        environment));
  }
  /// For ranks that log what they do.
  void waitUntilJoined() {
    for (auto& command : commands_)
      ASSERT_TRUE(command->waitForError("joined at the rendezvous", seconds(100)));
  }
  test::Command& last() { return *commands_.back(); }
  std::vector<test::CommandResult> wait() {
    std::vector<test::CommandResult> results;
    results.reserve(commands_.size());
    for (auto& command : commands_) results.push_back(command->wait(seconds(100)));
    return results;
  }

 private:
  std::string path() const { return directory_.path() + "/id"; }

  test::ScratchDirectory directory_;
  int nranks_;
  std::vector<std::unique_ptr<test::Command>> commands_;
};

/// TUTTI_TEST_RANKS for measurements by hand.
int manyRanks() {
  const char* text = std::getenv("TUTTI_TEST_RANKS");
  return text != nullptr ? std::stoi(text) : 80;
}

TEST(BootstrapProcesses, NoProcessNeedsASocketPerRank) {
  const int nranks = manyRanks();
  const test::SocketCount here(std::chrono::milliseconds(2));
  Ranks ranks(nranks);
  for (int rank = 0; rank < nranks; ++rank) ranks.start(rank);
  int most = 0;
  double longest = 0;
  for (const auto& result : ranks.wait()) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
    int sockets = 0;
    double duration = 0;
    ASSERT_EQ(std::sscanf(result.out.c_str(), "sockets %d seconds %lf", &sockets, &duration), 2)
        << result.out;
    most = std::max(most, sockets);
    longest = std::max(longest, duration);
  }
  std::printf("%d ranks: %d sockets at most in a rank, %d at the rendezvous; %.3f s from the first join\n",
              nranks, most, here.most(), longest);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 32);
  EXPECT_LE(here.most(), 60);
}

TEST(BootstrapProcesses, ARankThatIsKilledWhileOthersAreMissingIsNamed) {
  Ranks ranks(20);
  for (int rank = 1; rank < 20; ++rank) ranks.start(rank, {{"NCCL_DEBUG", "INFO"}});
  ranks.waitUntilJoined();
  const std::string pid = std::to_string(ranks.last().pid());
  ranks.last().kill(SIGKILL);
  auto results = ranks.wait();
  results.pop_back();
  for (const auto& result : results) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("\nrank 19 (pid " + pid + " on "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("left while the communicator was being made"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace tutti
