// libtutti.so and libnccl.so.2 in one process: refused where a program's calls are divided between them, told
// where one only lies beside the other.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/loaded_twice.h"
#include "tests/harness/command.h"

namespace tutti::test {
namespace {

CommandResult run(const char* program, const char* log_level) {
  return runCommand({program}, {{"NCCL_DEBUG", log_level}});
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(LoadedTwice, OneCopyIsNothingToSpeakOf) {
  const OtherCopies none = findOtherCopies();
  EXPECT_EQ(none.words, "");
  EXPECT_FALSE(none.is_split);
}

// As a program does that looks for NCCL at run time: its functions are found through the handle only.
TEST(LoadedTwice, ALibraryThatSomebodyLoadedForHimselfIsToldButNotRefused) {
  void* const nccl = ::dlopen(TUTTI_LIB_DIR "/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(nccl, nullptr) << ::dlerror();
  const OtherCopies found = findOtherCopies();
  EXPECT_TRUE(contains(found.words, TUTTI_LIB_DIR "/libnccl.so.2; this is the first")) << found.words;
  EXPECT_FALSE(found.is_split);
  ::dlclose(nccl);
}

TEST(LoadedTwice, LibrariesLoadedForEverybodyDivideCalls) {
  void* const nccl = ::dlopen(TUTTI_LIB_DIR "/libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  void* const tutti = ::dlopen(TUTTI_LIB_DIR "/libtutti.so.0", RTLD_NOW | RTLD_GLOBAL);
  ASSERT_TRUE(nccl != nullptr && tutti != nullptr) << ::dlerror();
  EXPECT_TRUE(findOtherCopies().is_split);
  ::dlclose(tutti);
  ::dlclose(nccl);
}

TEST(LoadedTwice, DividedCallsAreRefusedByBoth) {
  const CommandResult result = run(TUTTI_NCCL_FIRST, "NONE");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "ncclGetUniqueId: 5 two libraries")) << result.out;
  EXPECT_TRUE(contains(result.out, "ncclX is found in " TUTTI_LIB_DIR
                                   "/libnccl.so.2, tuttiX in " TUTTI_LIB_DIR "/libtutti.so.0."))
      << result.out;
  EXPECT_TRUE(contains(result.out, "Tutti::tutti (-ltutti)")) << result.out;
  EXPECT_TRUE(contains(result.out, "tuttiLaunchFromEnvironment: 5\n")) << result.out;
}

TEST(LoadedTwice, DividedCallsAreLogged) {
  const CommandResult result = run(TUTTI_NCCL_FIRST, "WARN");
  EXPECT_TRUE(contains(result.err, "NCCL WARN two libraries with NCCL's functions are loaded, and"))
      << result.err;
}

TEST(LoadedTwice, ACopyThatNobodyCallsIsLoggedOnce) {
  const CommandResult result = run(TUTTI_TUTTI_FIRST, "WARN");
  EXPECT_TRUE(contains(result.out, "ncclGetUniqueId: 0 ")) << result.out;
  EXPECT_TRUE(contains(result.out, "tuttiLaunchFromEnvironment: 0\n")) << result.out;
  const std::string words = "two libraries with NCCL's functions are loaded, " TUTTI_LIB_DIR
                            "/libtutti.so.0 and " TUTTI_LIB_DIR "/libnccl.so.2; this is the first";
  const auto first = result.err.find(words);
  ASSERT_NE(first, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("two libraries", first + 1), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tutti::test
