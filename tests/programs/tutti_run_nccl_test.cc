// What tutti-run says of programs that would load another libnccl.so.2: the programs themselves tell whose
// functions they got.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/programs/tutti_run_command.h"

namespace tutti::test {
namespace {

const std::string kOther = TUTTI_OTHER_NCCL_DIR;
const std::string kOurs = TUTTI_LIB_DIR;

CommandResult run(const std::string& how_linked, const Environment& environment = {},
                  const std::vector<std::string>& before = {}) {
  std::vector<std::string> command{"tutti-run", "-n", "2", "--no-prefix"};
  command.insert(command.end(), before.begin(), before.end());
  command.push_back(kOther + "/calls_nccl_" + how_linked);
  return runCommand(command, environment, kPatience);
}

/// It is warned, once, of the other library.
std::string warningOf(const std::string& how_linked, const Environment& environment) {
  const auto result = run(how_linked, environment);
  EXPECT_EQ(result.out, "another\nanother\n") << result.err;
  EXPECT_EQ(count(result.err, "\n"), 1U) << result.err;
  const std::string start =
      "tutti-run: '" + kOther + "/calls_nccl_" + how_linked + "' will load " + kOther + "/libnccl";
  EXPECT_EQ(result.err.find(start), 0U) << result.err;
  return result.err;
}

/// What stands between the words; empty where they are not there.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  const std::size_t end = text.find(after, at + before.size());
  return at == std::string::npos || end == std::string::npos
             ? ""
             : text.substr(at + before.size(), end - at - before.size());
}

void expectTuttis(const CommandResult& result) {
  EXPECT_EQ(result.out, "Tutti's\nTutti's\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(TuttiRun, SaysWhatAProgramLoadsInsteadOfTutti) {
  const std::pair<std::string, Environment> cases[] = {{"plain", {{"LD_LIBRARY_PATH", kOther}}},
                                                       {"plain", {{"LD_LIBRARY_PATH", kOther + ":" + kOurs}}},
                                                       {"runpath", {}}};
  for (const auto& [how_linked, environment] : cases) {
    const std::string warning = warningOf(how_linked, environment);
    const std::string remedy =
        between(warning, ", which is not Tutti's. For Tutti's set LD_LIBRARY_PATH=", "\n");
    ASSERT_NE(remedy, "") << warning;
    expectTuttis(run(how_linked, {{"LD_LIBRARY_PATH", remedy}}));
  }
}

TEST_F(TuttiRun, SaysWhatAProgramLoadsWhateverTheSearchPath) {
  for (const std::string how_linked : {"rpath", "by_path"}) {
    const std::string warning = warningOf(how_linked, {{"LD_LIBRARY_PATH", kOurs}});
    EXPECT_NE(warning.find("RPATH, or the path that it was linked by"), std::string::npos) << warning;
    const std::string remedy = between(warning, "or put env ", " before its name\n");
    ASSERT_NE(remedy, "") << warning;
#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer is to come before all other libraries
    expectTuttis(run(how_linked, {{"LD_LIBRARY_PATH", kOurs}}, {"env", remedy}));
#endif
  }
}

TEST_F(TuttiRun, SaysNothingOfProgramsThatLoadTutti) {
  const std::string both = kOurs + ":" + kOther;
  for (const auto* const how_linked : {"plain", "runpath"}) {
    expectTuttis(run(how_linked, {{"LD_LIBRARY_PATH", both}}));
  }
}

/// What the system has, if any, is NVIDIA's.
TEST_F(TuttiRun, SaysWhereTuttisLibraryIsToAProgramThatDoesNotLookThere) {
  const auto result = run("plain", {{"LD_LIBRARY_PATH", ""}});
  EXPECT_EQ(result.err.find("tutti-run: '" + kOther + "/calls_nccl_plain' "), 0U) << result.err;
  EXPECT_NE(result.err.find(". For Tutti's set LD_LIBRARY_PATH=" + kOurs + "\n"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace tutti::test
