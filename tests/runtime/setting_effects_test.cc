// Settings as users give them, to a program of one or two ranks: what each changes is seen from outside.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/rank_group.h"
#include "tests/harness/scratch_directory.h"

namespace tutti {
namespace {

using test::Environment;
using test::ScratchDirectory;

/// What a rank that is alone logs.
std::string logOf(Environment environment) {
  environment.try_emplace("NCCL_DEBUG", "INFO");
  const auto result = test::runCommand({"rank_program"}, environment);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.err;
}

void expectHas(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "expected: " << words << "\ngot: " << text;
}

TEST(SettingEffects, LinksHaveTheShapeThatIsAskedFor) {
  expectHas(logOf({}), "1 lane(s) of 4 slots of 131072 bytes");
  expectHas(logOf({{"TUTTI_LANES", "3"}, {"TUTTI_SLOTS", "6"}, {"TUTTI_SLOT_BYTES", "8192"}}),
            "3 lane(s) of 6 slots of 8192 bytes");
  expectHas(logOf({{"NCCL_BUFFSIZE", "65536"}}), "1 lane(s) of 4 slots of 16384 bytes");
  expectHas(logOf({{"NCCL_BUFFSIZE", "65536"}, {"TUTTI_SLOT_BYTES", "4096"}}), "of 4 slots of 4096 bytes");
}

TEST(SettingEffects, WhatActsOnGpusOnlyIsToldOnceToBeIgnoredOnHostMemory) {
  const std::string words =
      "NCCL_MIN_NCHANNELS has no effect on host memory, see docs/environment.md; it is ignored";
  Environment environment{{"NCCL_MIN_NCHANNELS", "99"}, {"NCCL_SHM_DISABLE", "1"}};
  const std::string log = logOf(environment);
  expectHas(log, "NCCL INFO " + words);
  EXPECT_EQ(log.find(words, log.find(words) + 1), std::string::npos) << log;
  EXPECT_EQ(log.find("NCCL_SHM_DISABLE"), std::string::npos) << log;
}

TEST(SettingEffects, CollectivesAreCarriedOutAsAskedFor) {
  struct Case {
    Environment environment;
    std::string way;
  };
  for (const auto& [environment, way] :
       {Case{{{"NCCL_PROTO", "Simple"}}, "AllReduce of 8 bytes one_shot over slots, "},
        Case{{{"NCCL_PROTO", "^LL,LL128"}}, "AllReduce of 8 bytes one_shot over slots, "},
        Case{{{"NCCL_PROTO", "LL128"}}, "AllReduce of 8 bytes one_shot over packets, "},
        Case{{{"NCCL_ALGO", "Ring"}}, "of 64 MiB ring over slots; "},
        Case{{{"NCCL_ALGO", "broadcast:Ring"}}, "of 64 MiB direct over slots; "},
        Case{{{"NCCL_ALGO", "Tree;allreduce:Ring"}}, "of 64 MiB ring over slots; "},
        Case{{{"NCCL_ALGO", "Ring"}, {"TUTTI_PLAN", "direct/slots"}},
             "AllReduce of 8 bytes direct over slots, "}}) {
    Environment all = environment;
    all["NCCL_DEBUG"] = "INFO";
    test::RankGroup group(2, {"barrier"}, all);
    for (const auto& result : group.wait()) expectHas(result.err, way);
  }
}

TEST(SettingEffects, TheEnvironmentComesBeforeFilesAndANamedFileBeforeThatOfTheUser) {
  const ScratchDirectory home;
  home.write(".nccl.conf", "TUTTI_SLOTS=5\nTUTTI_SLOT_BYTES=2048\n");
  const std::string named = home.write("named", "TUTTI_SLOTS=7\n");
  const auto shape = [&](Environment environment) {
    environment["HOME"] = home.path();
    return logOf(environment);
  };
  expectHas(shape({}), "of 5 slots of 2048 bytes");
  expectHas(shape({{"TUTTI_SLOTS", "6"}}), "of 6 slots of 2048 bytes");
  expectHas(shape({{"NCCL_CONF_FILE", named}}), "of 7 slots of 131072 bytes");
  expectHas(shape({{"NCCL_CONF_FILE", named}, {"TUTTI_SLOTS", "6"}}), "of 6 slots of 131072 bytes");
  // A file may say that there is a log, and where.
  const std::string log = home.path() + "/log";
  const std::string logging =
      home.write("logging", "NCCL_DEBUG=INFO\nNCCL_DEBUG_FILE=" + log + "\nTUTTI_SLOTS=8\n");
  EXPECT_EQ(logOf({{"NCCL_CONF_FILE", logging}, {"NCCL_DEBUG", "INFO"}}), "");
  std::ifstream file(log);
  expectHas(std::string((std::istreambuf_iterator<char>(file)), {}), "of 8 slots of 131072 bytes");
}

TEST(SettingEffects, EachProcessLogsToTheFileThatIsNamedAfterIt) {
  const ScratchDirectory folder;
  test::RankGroup group(2, {"barrier"},
                        {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_FILE", folder.path() + "/%h.%p.50%%.log"}});
  const std::array pids{group[0].pid(), group[1].pid()};
  test::expectSuccess(group.wait());
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string name = folder.path() + "/" + host.data() + "." +
                             std::to_string(pids[static_cast<std::size_t>(rank)]) + ".50%.log";
    std::ifstream file(name);
    expectHas(std::string((std::istreambuf_iterator<char>(file)), {}),
              "rank " + std::to_string(rank) + ": joined a communicator of 2");
  }
}

TEST(SettingEffects, TimesStandBeforeTheLinesThatAreAskedFor) {
  const auto firstOf = [](const Environment& environment) {
    const std::string log = logOf(environment);
    const std::size_t line = log.rfind('\n', log.find(" NCCL INFO ")) + 1;
    return log.substr(line, log.find('\n', line) - line);
  };
  EXPECT_NE(firstOf({}).front(), '[');
  EXPECT_EQ(firstOf({{"NCCL_DEBUG_TIMESTAMP_LEVELS", "INFO"}}).find("[20"), 0U);
  EXPECT_EQ(firstOf({{"NCCL_DEBUG_TIMESTAMP_LEVELS", "ALL"}, {"NCCL_DEBUG_TIMESTAMP_FORMAT", "at_%%_"}})
                .find("at % "),
            0U);
}

}  // namespace
}  // namespace tutti
