// Ranks as processes of rank_program.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/ranks.h"

namespace tutti::test {

using Environment = std::map<std::string, std::string>;

/// An id in a file, as a launcher hands it over.
class IdFile {
 public:
  IdFile() {
    static int made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("tutti_test_" + std::to_string(::getpid()) + "_" + std::to_string(made++));
    const ncclUniqueId id = newId();
    std::ofstream(path_, std::ios::binary).write(id.internal, sizeof(id.internal));
  }
  IdFile(const IdFile&) = delete;
  IdFile& operator=(const IdFile&) = delete;
  ~IdFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Ranks of a program, rank_program unless told otherwise, that run in the background, on one or, as they are
/// told, several hosts: then in contiguous blocks, and what goes from one to another takes the network.
class RankGroup {
 public:
  RankGroup(int nranks, const std::vector<std::string>& arguments, const Environment& common = {},
            const std::map<int, Environment>& per_rank = {}, int hosts = 1)
      : RankGroup(
            nranks, [&](int) { return arguments; }, common, per_rank, hosts) {}

  /// The same with arguments for each rank.
  RankGroup(int nranks, const std::function<std::vector<std::string>(int)>& arguments_of,
            const Environment& common = {}, const std::map<int, Environment>& per_rank = {}, int hosts = 1,
            const std::string& program = "rank_program") {
    for (int rank = 0; rank < nranks; ++rank) {
      Environment environment = common;
      environment["TUTTI_RANK"] = std::to_string(rank);
      environment["TUTTI_WORLD_SIZE"] = std::to_string(nranks);
      environment["TUTTI_ID_FILE"] = id_.path();
      if (hosts > 1) environment["NCCL_HOSTID"] = "host" + std::to_string(rank * hosts / nranks);
      if (per_rank.contains(rank)) {
        for (const auto& [name, value] : per_rank.at(rank)) environment[name] = value;
      }
      std::vector<std::string> argv{program};
      const auto arguments = arguments_of(rank);
      argv.insert(argv.end(), arguments.begin(), arguments.end());
      ranks_.push_back(std::make_unique<Command>(argv, environment));
    }
  }

  Command& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  void waitUntilReady() {
    for (auto& rank : ranks_) ASSERT_TRUE(rank->waitForOutput("ready", std::chrono::seconds(60)));
  }

  std::vector<CommandResult> wait() {
    std::vector<CommandResult> results;
    results.reserve(ranks_.size());
    for (auto& rank : ranks_) results.push_back(rank->wait(std::chrono::seconds(60)));
    return results;
  }

 private:
  IdFile id_;
  std::vector<std::unique_ptr<Command>> ranks_;
};

inline void expectSuccess(const std::vector<CommandResult>& results) {
  for (const auto& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
}

inline void expectSays(const CommandResult& result, const std::string& words) {
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << "expected: " << words << "\ngot: " << result.err;
}

}  // namespace tutti::test
