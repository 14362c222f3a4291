// The comparison with other libraries: its programs give right values, its driver writes what it promises.
// How fast anything is, no test says.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/peers/touch.h"
#include "tests/harness/scratch_directory.h"
#include "tests/programs/perf_command.h"

namespace tutti::perf {
namespace {

using nlohmann::json;

TEST(Touch, SeesEveryByte) {
  const peers::Pattern pattern{0x0102030405060708};
  std::vector<std::byte> memory(37);
  for (std::size_t bytes = 0; bytes <= memory.size(); ++bytes) {
    peers::rewrite(memory.data(), bytes, pattern);
    EXPECT_TRUE(peers::holds(memory.data(), bytes, pattern)) << bytes;
    for (std::size_t i = 0; i < bytes; ++i) {
      memory[i] ^= std::byte{1};
      EXPECT_FALSE(peers::holds(memory.data(), bytes, pattern)) << i << " of " << bytes;
      memory[i] ^= std::byte{1};
    }
  }
}

TEST(Touch, WritesNothingBehindTheEnd) {
  std::vector<std::byte> memory(16, std::byte{9});
  peers::rewrite(memory.data(), 11, {0});
  EXPECT_EQ(memory[10], std::byte{0});
  EXPECT_EQ(memory[11], std::byte{9});
}

/// The lines of one program of the comparison.
std::vector<json> linesOf(const CommandResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  std::vector<json> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

const Arguments kQuick{"--sizes", "8,12,4096,65544", "--samples", "2", "--budget-ms", "0.2"};

TEST(ComparePrograms, EveryCollectiveGivesRightValues) {
  for (const char* collective :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "sendrecv", "alltoall"}) {
    for (const char* type : {"float", "bfloat16"}) {
      SCOPED_TRACE(testing::Message() << collective << " " << type);
      const auto lines = linesOf(
          launched(3, "compare_tutti", kQuick + Arguments{"--collective", collective, "--type", type}));
      ASSERT_GE(lines.size(), 4U);
      EXPECT_EQ(lines[0]["ranks"], 3);
      for (std::size_t i = 1; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i]["wrong"], 0);
        EXPECT_EQ(lines[i]["loop_us"].size(), 2U);
        EXPECT_EQ(lines[i]["touch_us"].size(), 2U);
      }
    }
  }
  EXPECT_EQ(linesOf(launched(2, "compare_tutti", kQuick + Arguments{"--in-place", "--registered"})).size(),
            5U);
  EXPECT_EQ(
      launched(2, "compare_tutti", kQuick + Arguments{"--in-place", "--collective", "reduce"}).exit_code, 2);
}

/// The driver is a script, and Python is no condition of the build.
bool hasPython() { return runCommand({"python3", "--version"}).exit_code == 0; }

TEST(CompareDriver, WritesTableJsonAndChart) {
  if (!hasPython()) GTEST_SKIP() << "no python3";
  const auto folder = std::filesystem::path(testing::TempDir()) / ("compare." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string json_path = folder / "c.json";
  const std::string svg_path = folder / "c.svg";
  const CommandResult result = runCommand(
      {TUTTI_COMPARE, "--bin",       TUTTI_BIN_DIR, "--peers", "tutti",   "--ranks",  "2",     "--types",
       "float",       "--memory",    "plain",       "--sizes", "8,1K",    "--rounds", "3",     "--samples",
       "1",           "--budget-ms", "0.2",         "--json",  json_path, "--svg",    svg_path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "| size | Tutti | ratio |\n"));
  EXPECT_TRUE(matches(result.out, "\\| 1 KiB \\| -?[0-9.]+ \\(-?[0-9.]+–-?[0-9.]+\\) \\| - \\|\n"));
  const json report = json::parse(std::ifstream(json_path));
  ASSERT_EQ(report["results"].size(), 2U);
  EXPECT_EQ(report["results"][1]["bytes"], 1024);
  EXPECT_EQ(report["results"][1]["rounds_us"].size(), 3U);
  EXPECT_TRUE(report["versions"].contains("Tutti"));
  std::ifstream chart(svg_path);
  const std::string svg{std::istreambuf_iterator<char>(chart), {}};
  EXPECT_TRUE(contains(svg, "2 ranks, float, plain memory"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  std::filesystem::remove_all(folder);
}

/// Stands in for a build whose library sends `bytes` over the loopback interface, and says that it called
/// operations of 1 MiB so often.
class StandIn {
 public:
  StandIn(std::size_t bytes, std::size_t calls) {
    folder_.addProgram("tutti-run", "#!/bin/sh\necho \"$@\" > '" + folder_.path() + "/arguments'\nexec '" +
                                        folder_.path() + "/compare_tutti'\n");
    folder_.addProgram("compare_tutti", R"(#!/usr/bin/env python3
import socket
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
for _ in range()" + std::to_string(bytes / 1000) +
                                            R"():
    sender.sendall(bytes(1000))
    receiver.recv(1000, socket.MSG_WAITALL)
print('{"bytes": 1048576, "iterations": )" + std::to_string(calls) +
                                            R"(, "loop_us": [9.0, 9.0], "touch_us": [1.0, 1.0], "wrong": 0}')
)");
  }

  CommandResult compare(const Arguments& arguments) const {
    return runCommand(Arguments{TUTTI_COMPARE, "--bin", folder_.path(), "--peers", "tutti", "--types",
                                "float", "--memory", "plain", "--rounds", "1", "--sizes", "1M"} +
                      arguments);
  }

  std::string argumentsOfTuttiRun() const {
    std::ifstream file(folder_.path() + "/arguments");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  test::ScratchDirectory folder_;
};

TEST(CompareDriver, DividesRanksAmongHosts) {
  if (!hasPython()) GTEST_SKIP() << "no python3";
  const StandIn library(std::size_t{8} << 20, 4);
  const CommandResult result = library.compare({"--hosts", "2", "--ranks", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(library.argumentsOfTuttiRun().starts_with("--no-prefix -n 3 --hosts 2 "));
  EXPECT_TRUE(contains(result.out, "plain memory, over TCP between 2 hosts**"));
}

TEST(CompareDriver, TheRealLibraryUsesTheNetworkBetweenHosts) {
  if (!hasPython()) GTEST_SKIP() << "no python3";
  const CommandResult result =
      runCommand({TUTTI_COMPARE, "--bin",    TUTTI_BIN_DIR, "--peers",   "tutti",    "--hosts",     "2",
                  "--ranks",     "2,3",      "--types",     "float",     "--memory", "plain",       "--sizes",
                  "1M",          "--rounds", "1",           "--samples", "1",        "--budget-ms", "0.2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "**3 ranks, all_reduce, float, plain memory, over TCP between 2 hosts**"));
}

TEST(CompareDriver, SeesThatTheNetworkWasNotUsed) {
  if (!hasPython()) GTEST_SKIP() << "no python3";
  const StandIn library(0, 1000000);  // more than anything else on this machine moves meanwhile
  const CommandResult over_hosts = library.compare({"--hosts", "2", "--ranks", "2"});
  EXPECT_EQ(over_hosts.exit_code, 1);
  EXPECT_TRUE(contains(over_hosts.err, "did not use the network"));
  const CommandResult on_one = library.compare({"--ranks", "2"});
  EXPECT_EQ(on_one.exit_code, 0) << on_one.err;
  EXPECT_TRUE(library.argumentsOfTuttiRun().starts_with("--no-prefix -n 2 "));
  EXPECT_FALSE(contains(library.argumentsOfTuttiRun(), "--hosts"));
  EXPECT_FALSE(contains(on_one.out, "TCP"));
}

TEST(CompareDriver, SaysWhatIsMissing) {
  if (!hasPython()) GTEST_SKIP() << "no python3";
  const CommandResult result = runCommand({TUTTI_COMPARE, "--bin", "/nonexistent", "--peers", "tutti,mpich"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "MPICH: no /nonexistent/compare_mpich; left out"));
  EXPECT_EQ(runCommand({TUTTI_COMPARE, "--peers", "gloo"}).exit_code, 2);
  EXPECT_EQ(runCommand({TUTTI_COMPARE, "--hosts", "3", "--ranks", "2,4"}).exit_code, 2);
  EXPECT_EQ(runCommand({TUTTI_COMPARE, "--hosts", "0"}).exit_code, 2);
  EXPECT_EQ(runCommand({TUTTI_COMPARE, "--in-place", "--collective", "alltoall"}).exit_code, 2);
}

}  // namespace
}  // namespace tutti::perf
