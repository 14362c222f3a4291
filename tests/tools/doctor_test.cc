// tutti-doctor as its users run it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

using nlohmann::json;

/// The findings about `check`, of a run with --json.
json about(const json& document, const std::string& check) {
  json found = json::array();
  for (const json& finding : document.at("findings")) {
    if (finding.at("check") == check) found.push_back(finding);
  }
  return found;
}

json parsed(const CommandResult& result) {
  json document = json::parse(result.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << result.out << result.err;
  return document;
}

TEST(Doctor, LooksAtThisHostAndSaysTheSameBothWays) {
  const CommandResult text = runCommand({"tutti-doctor"});
  const CommandResult result = runCommand({"tutti-doctor", "--json"});
  EXPECT_EQ(text.exit_code, result.exit_code) << text.out << text.err;
  const json document = parsed(result);
  EXPECT_EQ(document.at("exit_status"), result.exit_code);
  EXPECT_EQ(document.at("format"), 1);
  std::size_t counted = 0;
  for (const auto& [level, count] : document.at("counts").items()) counted += count.get<std::size_t>();
  EXPECT_EQ(counted, document.at("findings").size());
  for (const json& finding : document.at("findings")) {
    EXPECT_NE(text.out.find(finding.at("check").get<std::string>()), std::string::npos) << finding;
    const bool is_bad = finding.at("level") == "warning" || finding.at("level") == "failure";
    EXPECT_TRUE(!is_bad || !finding.at("todo").get<std::string>().empty()) << finding;
  }
  for (const char* check : {"environment", "interface", "locked memory", "free memory", "shared memory"})
    EXPECT_EQ(about(document, check).size(), 1U) << check;
}

TEST(Doctor, TheEnvironmentOfTheJobCounts) {
  const CommandResult wrong = runCommand({"tutti-doctor", "--json"}, {{"NCCL_SOCKET_IFNAME", "=nowhere7"}});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(about(parsed(wrong), "interface").at(0).at("level"), "failure");
  const CommandResult garbage = runCommand({"tutti-doctor", "--json"}, {{"TUTTI_SLOTS", "many"}});
  EXPECT_EQ(garbage.exit_code, 2);
  EXPECT_NE(about(parsed(garbage), "environment").at(0).at("seen").get<std::string>().find("TUTTI_SLOTS"),
            std::string::npos);
}

TEST(Doctor, EveryWrongVariableIsNamedAtOnce) {
  const CommandResult result =
      runCommand({"tutti-doctor", "--json"}, {{"TUTTI_SLOTS", "many"},
                                              {"TUTTI_FAULTS", "nonsense"},
                                              {"TUTTI_SECRET_FILE", "/nowhere/secret"},
                                              {"TUTTI_TIMEOT", "3"}});
  const json document = parsed(result);
  EXPECT_EQ(result.exit_code, 2);
  const std::string environment = about(document, "environment").dump();
  for (const char* variable : {"TUTTI_SLOTS", "TUTTI_FAULTS", "TUTTI_TIMEOT"})
    EXPECT_NE(environment.find(variable), std::string::npos) << variable << environment;
  EXPECT_NE(about(document, "rendezvous").dump().find("/nowhere/secret"), std::string::npos);
}

TEST(Doctor, WrongSettingsOfRdmaAreFindingsWhereThereIsNoDevice) {
  if (!TUTTI_HAVE_VERBS) GTEST_SKIP() << "this Tutti was built without RDMA";
  for (const auto& [name, value] :
       {std::pair("NCCL_IB_HCA", "a:b"), std::pair("NCCL_IB_ADDR_RANGE", "10.0.0.0/40")}) {
    const CommandResult result = runCommand({"tutti-doctor", "--json"}, {{name, value}});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(about(parsed(result), "environment").dump().find(name), std::string::npos) << result.out;
  }
}

TEST(Doctor, AReportThatIsLostIsAnError) {
  for (const char* json : {"", "--json"}) {
    const CommandResult result =
        runCommand({"sh", "-c", "exec \"$0\" $1 >/dev/full", programFolder() + "/tutti-doctor", json});
    EXPECT_EQ(result.exit_code, 2) << json;
    EXPECT_NE(result.err.find("No space left"), std::string::npos) << result.err;
  }
}

TEST(Doctor, WhoCannotTakePartSaysSoInADocumentToo) {
  for (const std::string& task : {std::string("--listen"), std::string("--peer=10.0.0.1")}) {
    std::vector<std::string> command{"tutti-doctor", task, "--json"};
    if (task != "--listen") command.emplace_back("--token=62b246136d47bf2e0a77feaf");
    const CommandResult result = runCommand(command, {{"NCCL_SOCKET_IFNAME", "=nowhere7"}});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(about(parsed(result), "this host").dump().find("nowhere7"), std::string::npos) << result.out;
  }
}

TEST(Doctor, EveryVariableIsShownWithItsOrigin) {
  const ScratchDirectory directory;
  const std::string file = directory.write("conf", "TUTTI_SLOTS=8\nNCCL_ALGO=Ring\n");
  const std::map<std::string, std::string> environment{
      {"NCCL_CONF_FILE", file}, {"NCCL_ALGO", "Tree"}, {"NCCL_NTHREADS", "256"}};
  const CommandResult result = runCommand({"tutti-doctor", "--env", "--json"}, environment);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json document = parsed(result);
  const auto shown = [&document](const char* name) {
    const auto found =
        std::ranges::find(document, name, [](const json& row) { return row.at("name").get<std::string>(); });
    return found != document.end() ? *found : json{};
  };
  EXPECT_EQ(shown("TUTTI_SLOTS").at("value"), "8");
  EXPECT_EQ(shown("TUTTI_SLOTS").at("from"), file + " line 1");
  EXPECT_EQ(shown("NCCL_ALGO").at("value"), "Tree");
  EXPECT_EQ(shown("NCCL_ALGO").at("from"), "environment");
  EXPECT_EQ(shown("NCCL_ALGO").at("acts"), true);
  EXPECT_EQ(shown("TUTTI_TIMEOUT").at("from"), "default");
  EXPECT_EQ(shown("NCCL_NTHREADS").at("acts"), false);
  EXPECT_NE(shown("NCCL_NTHREADS").at("remark"), "");

  const CommandResult text = runCommand({"tutti-doctor", "--env"}, environment);
  for (const json& row : document)
    EXPECT_NE(text.out.find(row.at("name").get<std::string>()), std::string::npos) << row;
  const CommandResult unknown = runCommand({"tutti-doctor", "--env"}, {{"NCCL_DEBGU", "INFO"}});
  EXPECT_EQ(unknown.exit_code, 0);
  EXPECT_NE(unknown.out.find("no: unknown; did you mean NCCL_DEBUG?"), std::string::npos) << unknown.out;
  const CommandResult wrong = runCommand({"tutti-doctor", "--env"}, {{"TUTTI_SLOTS", "many"}});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.out.find("REFUSED: TUTTI_SLOTS=\"many\": expected"), std::string::npos) << wrong.out;
}

TEST(Doctor, NamesCloseToKnownOnesAreWarnings) {
  const CommandResult result = runCommand({"tutti-doctor", "--json"}, {{"NCCL_SOCKET_IFNAM", "lo"}});
  const json finding = about(parsed(result), "environment").at(0);
  EXPECT_EQ(finding.at("level"), "warning");
  EXPECT_NE(finding.at("seen").get<std::string>().find("did you mean NCCL_SOCKET_IFNAME?"), std::string::npos)
      << finding;
}

TEST(Doctor, LimitsAreThoseOfTheCaller) {
  const CommandResult result =
      runCommand({"sh", "-c", "ulimit -n 100; exec \"$0\" --json", programFolder() + "/tutti-doctor"});
  const json files = about(parsed(result), "open files").at(0);
  EXPECT_EQ(files.at("level"), "failure") << files;
  EXPECT_EQ(result.exit_code, 2);
}

TEST(Doctor, BadUsageIsToldApartFromFindings) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--nonsense"},
                                                    {"--listen", "70000"},
                                                    {"--peer", "a"},
                                                    {"--listen", "--peer", "a"},
                                                    {"--wait", "3"},
                                                    {"--peer", "a", "--token", "12"},
                                                    {"--peer", "a:0", "--token", "62b246136d47bf2e0a77feaf"},
                                                    {"extra"}}) {
    std::vector<std::string> command{"tutti-doctor"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const CommandResult result = runCommand(command);
    EXPECT_EQ(result.exit_code, 64) << arguments.front() << result.out;
    EXPECT_NE(result.err.find("--help"), std::string::npos) << result.err;
  }
  const CommandResult help = runCommand({"tutti-doctor", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("Exit status"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
