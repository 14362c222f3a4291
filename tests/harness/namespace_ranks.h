// Ranks of rank_program in network namespaces, started by environment as a launcher starts them on machines
// of a cluster.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/namespaces.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {

class NamespaceRanks : public NamespaceTest {
 protected:
  using Environment = Namespaces::Environment;
  using Results = std::vector<CommandResult>;

  static constexpr int kMasterPort = 29500;  ///< free: the namespaces are new. Rank 0 takes the next one

  struct Job {
    int per_host = 1;
    std::vector<std::string> arguments;
    Environment common = {};
    std::map<int, Environment> by_rank = {};
  };

  NamespaceRanks() : secret_(secretFile("secret", "known to the ranks of this test")) {}

  std::string secretFile(const std::string& name, const std::string& text) const {
    std::string path = directory_.write(name, text);
    ::chmod(path.c_str(), 0600);
    return path;
  }

  /// One rank of a job.
  std::unique_ptr<Command> start(const Namespaces& hosts, const Job& job, int rank) const {
    Environment environment{{"RANK", std::to_string(rank)},
                            {"WORLD_SIZE", std::to_string(hosts.size() * job.per_host)},
                            {"MASTER_ADDR", Namespaces::address(0)},
                            {"MASTER_PORT", std::to_string(kMasterPort)},
                            {"TUTTI_SECRET_FILE", secret_}};
    for (const auto& [name, value] : job.common) environment[name] = value;
    if (job.by_rank.contains(rank)) {
      for (const auto& [name, value] : job.by_rank.at(rank)) environment[name] = value;
    }
    std::vector<std::string> argv{"rank_program"};
    argv.insert(argv.end(), job.arguments.begin(), job.arguments.end());
    return hosts.start(rank / job.per_host, argv, environment);
  }

  std::vector<std::unique_ptr<Command>> startAll(const Namespaces& hosts, const Job& job) const {
    const int nranks = hosts.size() * job.per_host;
    std::vector<std::unique_ptr<Command>> ranks;
    ranks.reserve(static_cast<std::size_t>(nranks));
    for (int rank = 0; rank < nranks; ++rank) ranks.push_back(start(hosts, job, rank));
    return ranks;
  }

  static void waitUntilReady(const std::vector<std::unique_ptr<Command>>& ranks) {
    for (const auto& rank : ranks) ASSERT_TRUE(rank->waitForOutput("ready", std::chrono::seconds(60)));
  }

  static Results wait(const std::vector<std::unique_ptr<Command>>& ranks) {
    Results results;
    results.reserve(ranks.size());
    for (const auto& rank : ranks) results.push_back(rank->wait(std::chrono::seconds(90)));
    return results;
  }

  Results run(const Namespaces& hosts, const Job& job) const { return wait(startAll(hosts, job)); }

  static void expectSuccess(const Results& results) {
    for (const auto& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  static void expectSays(const CommandResult& result, const std::string& words) {
    EXPECT_NE(result.err.find(words), std::string::npos) << "expected: " << words << "\ngot: " << result.err;
  }

  /// An error within `limit`, not a kill.
  static void expectFails(const CommandResult& result, std::chrono::seconds limit) {
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_LT(result.seconds, static_cast<double>(limit.count())) << result.err;
  }

 private:
  ScratchDirectory directory_;
  std::string secret_;
};

}  // namespace tutti::test
