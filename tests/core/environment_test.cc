#include "runtime/core/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tutti/error.h"

namespace tutti {
namespace {

TEST(Environment, TheFirstValueCounts) {
  Environment environment;
  const char* const variables[] = {"NCCL_DEBUG=INFO", "NCCL_PROTO=", "PATH=/bin", nullptr};
  environment.addVariables(variables);
  environment.addFile("mine",
                      "# of this user\nNCCL_DEBUG=WARN\nNCCL_ALGO=Ring\nNCCL_ALGO=Tree\nNCCL_PROTO=LL\n");
  environment.addFile("all", "NCCL_ALGO=Tree\nTUTTI_SLOTS=8\n");
  EXPECT_EQ(environment.find("NCCL_DEBUG")->text, "INFO");
  EXPECT_EQ(environment.find("NCCL_DEBUG")->origin, "environment");
  EXPECT_EQ(environment.find("NCCL_ALGO")->text, "Ring");
  EXPECT_EQ(environment.find("NCCL_ALGO")->origin, "mine line 3");
  EXPECT_EQ(environment.find("NCCL_PROTO")->text, "");  // set, though empty: the default
  EXPECT_EQ(environment.find("TUTTI_SLOTS")->origin, "all line 2");
  EXPECT_EQ(environment.find("PATH"), nullptr);
  EXPECT_TRUE(environment.warnings().empty());
  EXPECT_EQ(readSettings(environment).links.slot_count, 8U);
}

TEST(Environment, LinesMayHaveSpacesAndAnyEnd) {
  Environment environment;
  environment.addFile("f",
                      "\r\n  NCCL_DEBUG = INFO \r\n\t# NCCL_ALGO=Ring\nNCCL_HOSTID=a=b #c\nTUTTI_SLOTS=8");
  EXPECT_EQ(environment.find("NCCL_DEBUG")->text, "INFO");
  EXPECT_EQ(environment.find("NCCL_ALGO"), nullptr);
  EXPECT_EQ(environment.find("NCCL_HOSTID")->text, "a=b #c");
  EXPECT_EQ(environment.find("TUTTI_SLOTS")->text, "8");
}

TEST(Environment, LinesThatArePassedOverAreToldWithTheReason) {
  constexpr std::string_view kExpected = "; expected NAME=VALUE, or # and a comment";
  constexpr std::string_view kOnly = "only names with NCCL_ or TUTTI_ before them are read from files; ";
  const auto text = [](std::string_view a, std::string_view b) { return std::string(a) + std::string(b); };
  const std::pair<std::string, std::string> cases[] = {
      {"NCCL_DEBUG INFO", text("\"NCCL_DEBUG INFO\" has no =", kExpected)},
      {" = INFO", text("there is no name before the =", kExpected)},
      {"export NCCL_ALGO=Ring", text("\"export NCCL_ALGO\" is no name, it has a space", kExpected)},
      {std::string("NCCL_ALGO=Ri\0ng", 15), text("it has a zero byte", kExpected)},
      {"LD_LIBRARY_PATH=/x", text(kOnly, "set LD_LIBRARY_PATH in the environment")},
      {"NCLL_DEBUG=INFO", text(kOnly, "NCLL_DEBUG is none; did you mean NCCL_DEBUG?")},
      {"\x1b[31m" + std::string(60, 'x'),
       text("\"?[31m" + std::string(35, 'x') + "...\" has no =", kExpected)},
  };
  for (const auto& [line, reason] : cases) {
    Environment environment;
    environment.addFile("/f", "TUTTI_SLOTS=8\n" + line + "\nTUTTI_LANES=2\n");
    ASSERT_EQ(environment.warnings(), std::vector{"/f line 2 is passed over: " + reason});
    EXPECT_EQ(environment.find("NCCL_ALGO"), nullptr);
    EXPECT_EQ(environment.find("TUTTI_SLOTS")->text, "8");
    EXPECT_EQ(environment.find("TUTTI_LANES")->text, "2");
  }
}

TEST(Environment, QuotesArePartOfAValueAsItIsSaid) {
  Environment environment;
  environment.addFile("/f", "NCCL_HOSTID=\"a\"\nTUTTI_SECRET_FILE='f'\nTUTTI_SLOTS=\"8\"\nNCCL_IB_HCA=\"\n");
  EXPECT_EQ(environment.find("NCCL_HOSTID")->text, "\"a\"");
  constexpr const char* kEnd = ", as in NCCL; leave them out";
  using namespace std::string_literals;
  EXPECT_EQ(environment.warnings(),
            (std::vector{"NCCL_HOSTID (/f line 1): the quotes are part of the value \"a\""s + kEnd,
                         "TUTTI_SECRET_FILE (/f line 2): the quotes are part of the value 'f'"s + kEnd,
                         "TUTTI_SLOTS (/f line 3): the quotes are part of the value \"8\""s + kEnd}));
  std::vector<std::string> problems;
  readSettings(environment, &problems);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find(
                "The quotes are part of the value, as in NCCL: leave them out. It comes from /f line 3"),
            std::string::npos)
      << problems[0];
}

TEST(Environment, AByteOrderMarkIsNoPartOfAName) {
  Environment environment;
  environment.addFile("f", "\xef\xbb\xbfTUTTI_SLOTS=8\n");
  ASSERT_NE(environment.find("TUTTI_SLOTS"), nullptr);
  EXPECT_TRUE(environment.warnings().empty());
}

TEST(Environment, FilesMayHoldAnything) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "NCCL_DEBUG=\n#\0\xff Z"[random() % 17];
    Environment environment;
    environment.addFile("f", text);
    EXPECT_LE(environment.warnings().size(), 320U);
  }
}

TEST(Environment, AWrongValueIsRefusedWithItsFile) {
  Environment environment;
  environment.addFile("/etc/nccl.conf", "\nTUTTI_SLOTS=two\n");
  try {
    readSettings(environment);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ncclInvalidUsage);
    const std::string text = error.what();
    EXPECT_NE(text.find("TUTTI_SLOTS=\"two\": expected a whole number from 2 to 64"), std::string::npos)
        << text;
    EXPECT_NE(text.find("It comes from /etc/nccl.conf line 2"), std::string::npos) << text;
  }
}

TEST(Environment, NamesCloseToKnownOnesAreAskedAbout) {
  const std::pair<const char*, const char*> cases[] = {{"NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"},
                                                       {"NCCL_SOCKET_INFAME", "NCCL_SOCKET_IFNAME"},
                                                       {"TUTTI_TIMEOT", "TUTTI_TIMEOUT"},
                                                       {"TUTTI_DEBUG", "NCCL_DEBUG"},
                                                       {"NCCL_SLOTS", "TUTTI_SLOTS"},
                                                       {"NCCL_SOMETHING_NEW", ""},
                                                       {"TUTTI_PROGRAM", ""}};
  for (const auto& [name, meant] : cases) EXPECT_EQ(closestSetting(name), meant) << name;

  Environment environment;
  const char* const variables[] = {"NCCL_DEBUGG=INFO", "NCCL_SOMETHING_NEW=1", "TUTTI_EMULATED_GPUS=2",
                                   "NCCL_TESTS_DEVICE=0", nullptr};
  environment.addVariables(variables);
  ASSERT_EQ(environment.warnings().size(), 1U);
  EXPECT_EQ(environment.warnings()[0],
            "NCCL_DEBUGG (environment) is no variable that Tutti or NCCL knows; did you mean NCCL_DEBUG?");
  EXPECT_EQ(environment.unknown(), (std::vector<std::string>{"NCCL_DEBUGG", "NCCL_SOMETHING_NEW"}));
}

TEST(Environment, FilesAreFoundAsNcclFindsThem) {
  const auto folder = std::filesystem::temp_directory_path() / ("tutti_conf_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / ".nccl.conf") << "NCCL_HOSTID=home\nTUTTI_SLOTS=8\n";
  std::ofstream(folder / "other") << "NCCL_HOSTID=other\n";
  ::setenv("HOME", folder.c_str(), 1);
  ::unsetenv("NCCL_CONF_FILE");
  EXPECT_EQ(Environment::ofProcess().find("NCCL_HOSTID")->text, "home");
  ::setenv("NCCL_CONF_FILE", (folder / "other").c_str(), 1);
  EXPECT_EQ(Environment::ofProcess().find("NCCL_HOSTID")->text, "other");
  EXPECT_EQ(Environment::ofProcess().find("TUTTI_SLOTS"), nullptr);  // instead of ~/.nccl.conf
  for (const std::filesystem::path& path : {folder / "missing", folder, std::filesystem::path("/dev/zero")}) {
    ::setenv("NCCL_CONF_FILE", path.c_str(), 1);
    EXPECT_THROW(Environment::ofProcess(), Error) << path;
  }
  ::unsetenv("NCCL_CONF_FILE");
  std::ofstream(folder / ".nccl.conf") << "NCCL_HOSTID=home\n" << std::string(2 << 20, '#');
  const Environment too_large = Environment::ofProcess();
  EXPECT_EQ(too_large.find("NCCL_HOSTID"), nullptr);
  ASSERT_EQ(too_large.warnings().size(), 1U);
  EXPECT_EQ(too_large.warnings().front(),
            (folder / ".nccl.conf").string() + " is passed over: File too large");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tutti
