// Ranks started by torchrun, mpirun or srun: their variables, and an address that all ranks know.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/free_port.h"
#include "tests/harness/scratch_directory.h"
#include "transports/listener.h"
#include "transports/socket_address.h"

namespace tutti {
namespace {

using std::chrono::seconds;
using Environment = std::map<std::string, std::string>;

struct Names {
  const char* rank;
  const char* size;
};

class Launchers : public testing::Test {
 protected:
  Launchers() : secret_(directory_.write("secret", "known to the ranks of this test")) {
    ::chmod(secret_.c_str(), 0600);
  }

  static std::vector<test::CommandResult> run(int nranks, const Names& names, const Environment& common) {
    std::vector<std::unique_ptr<test::Command>> ranks;
    for (int rank = 0; rank < nranks; ++rank) {
      Environment environment = common;
      environment[names.rank] = std::to_string(rank);
      environment[names.size] = std::to_string(nranks);
      ranks.push_back(std::make_unique<test::Command>(
          std::vector<std::string>{"rank_program", "conform", "5"}, environment));
    }
    std::vector<test::CommandResult> results;
    results.reserve(ranks.size());
    for (auto& rank : ranks) results.push_back(rank->wait(seconds(60)));
    return results;
  }

  static void expectSuccess(const std::vector<test::CommandResult>& results) {
    for (const auto& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  static void expectSays(const Environment& environment, const std::string& words) {
    const auto result = test::runCommand({"rank_program"}, environment);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find(words), std::string::npos) << "expected: " << words << "\ngot: " << result.err;
  }

  test::ScratchDirectory directory_;
  std::string secret_;
};

TEST_F(Launchers, Torchrun) {
  // Its own store listens on MASTER_PORT.
  NetAddress store = parseNumericHost("127.0.0.1").value();
  store.port = static_cast<std::uint16_t>(test::freePort());
  const UniqueFd listener = listenOn(store, {}, "");
  expectSuccess(run(3, {"RANK", "WORLD_SIZE"},
                    {{"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", std::to_string(store.port)},
                     {"TUTTI_SECRET_FILE", secret_}}));
}

TEST_F(Launchers, TorchrunByNameAndIpv6) {
  for (const char* host : {"localhost", "::1"}) {
    expectSuccess(run(2, {"RANK", "WORLD_SIZE"},
                      {{"MASTER_ADDR", host},
                       {"MASTER_PORT", std::to_string(test::freePort())},
                       {"TUTTI_SECRET_FILE", secret_}}));
  }
}

TEST_F(Launchers, MpirunAndSrunWithCommId) {
  for (const Names names : {Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                            Names{"PMI_RANK", "PMI_SIZE"}, Names{"SLURM_PROCID", "SLURM_NTASKS"}}) {
    expectSuccess(run(
        2, names,
        {{"NCCL_COMM_ID", "127.0.0.1:" + std::to_string(test::freePort())}, {"TUTTI_SECRET_FILE", secret_}}));
  }
}

TEST_F(Launchers, InsecureIsSaidInTheLog) {
  const auto results = run(2, {"RANK", "WORLD_SIZE"},
                           {{"NCCL_COMM_ID", "127.0.0.1:" + std::to_string(test::freePort())},
                            {"TUTTI_INSECURE", "1"},
                            {"NCCL_DEBUG", "WARN"}});
  expectSuccess(results);
  for (const auto& result : results) {
    EXPECT_NE(result.err.find("WARN TUTTI_INSECURE=1: whoever reaches 127.0.0.1:"), std::string::npos)
        << result.err;
  }
}

TEST_F(Launchers, RanksThatWaitSeeThatTheRendezvousDied) {
  const auto start = [&, port = std::to_string(test::freePort())](int rank) {
    return std::make_unique<test::Command>(std::vector<std::string>{"rank_program"},
                                           Environment{{"RANK", std::to_string(rank)},
                                                       {"WORLD_SIZE", "3"},
                                                       {"NCCL_COMM_ID", "127.0.0.1:" + port},
                                                       {"TUTTI_SECRET_FILE", secret_},
                                                       {"NCCL_DEBUG", "INFO"}});
  };
  const auto rank_0 = start(0);  // the rendezvous is its thread
  const auto rank_1 = start(1);
  ASSERT_TRUE(rank_1->waitForError("joined at the rendezvous", seconds(60)));
  rank_0->kill(SIGKILL);
  const auto result = rank_1->wait(seconds(60));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("has ended, and rank 0 did not call this rank at 127.0.0.1:"), std::string::npos)
      << result.err;
}

TEST_F(Launchers, AloneNeedsNoAddress) {
  expectSuccess(run(1, {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {}));
}

TEST_F(Launchers, TheOwnLauncherGoesFirst) {
  expectSays({{"TUTTI_RANK", "0"}, {"TUTTI_WORLD_SIZE", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}},
             "TUTTI_ID_FILE is not");
}

TEST_F(Launchers, WhatIsMissingIsNamed) {
  expectSays({{"RANK", "0"}}, "WORLD_SIZE is not set");
  expectSays({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}, "RANK is not set");
  expectSays({{"PMI_RANK", "0"}}, "PMI_SIZE is not set");
  expectSays({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "2"}}, "SLURM_PROCID=\"2\"");
  expectSays({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, "rank 1 of 2, but MASTER_ADDR is not set");
  expectSays({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}, "MASTER_PORT is not set");
  const Environment address{
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "4711"}};
  expectSays(address, "set TUTTI_SECRET_FILE");
  Environment port = address;
  port["MASTER_PORT"] = "65535";
  expectSays(port, "MASTER_PORT=\"65535\"");
  expectSays({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"NCCL_COMM_ID", "nonsense"}}, "NCCL_COMM_ID=\"nonsense\"");
}

}  // namespace
}  // namespace tutti
