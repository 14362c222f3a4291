// The cache of compiled kernels: used again, shared by processes that come at once, and never half written.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "tests/cuda_emulator/probe.h"
#include "tests/cuda_emulator/ptx_text.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

namespace fs = std::filesystem;

/// An empty cache of its own for the length of a test, and the environment as it was afterwards.
class MachineCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tutti_cache_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    if (const char* usual = std::getenv("TUTTI_EMULATOR_CACHE")) usual_ = usual;
    setenv("TUTTI_EMULATOR_CACHE", folder_.c_str(), 1);
  }
  void TearDown() override {
    setenv("TUTTI_EMULATOR_CACHE", usual_.c_str(), 1);
    unsetenv("TUTTI_EMULATOR_CXX");
    fs::remove_all(folder_);
  }

  std::vector<fs::path> objects() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".so") found.push_back(entry.path());
    }
    return found;
  }

  fs::path folder_;
  std::string usual_;
};

std::string storing(int value) { return kernelText("st.global.u32 [%rd1], " + std::to_string(value) + ";"); }

int stored(const std::string& text) {
  int word = 0;
  runKernel(*Module::load(text), "k", shape(1, 1), &word);
  return word;
}

TEST_F(MachineCache, oneObjectPerText) {
  Module::load(storing(1));
  EXPECT_TRUE(objects().empty()) << "loading alone compiles nothing";
  EXPECT_EQ(stored(storing(1)), 1);
  EXPECT_EQ(objects().size(), 1u);
  // Without a compiler only what is in the cache can run; its key names the compiler, so hide it by its own
  // path.
  EXPECT_EQ(stored(storing(1)), 1);
  EXPECT_EQ(objects().size(), 1u);
  EXPECT_EQ(stored(storing(2)), 2);
  EXPECT_EQ(objects().size(), 2u);
}

TEST_F(MachineCache, saysWhichCompilerIsMissing) {
  setenv("TUTTI_EMULATOR_CXX", "/nowhere/g++", 1);
  try {
    stored(storing(3));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/g++"), std::string::npos) << error.what();
  }
}

TEST_F(MachineCache, processesThatComeAtOnceCompileOnce) {
  // A compiler that counts its runs.
  const fs::path counter = folder_ / "runs";
  const fs::path compiler = folder_ / "counting_compiler";
  std::ofstream(compiler) << "#!/bin/sh\necho run >> " << counter.string() << "\nexec g++ \"$@\"\n";
  fs::permissions(compiler, fs::perms::owner_all);
  setenv("TUTTI_EMULATOR_CXX", compiler.c_str(), 1);
  constexpr int kProcesses = 4;
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() == 0) _exit(stored(storing(44)) == 44 ? 0 : 1);
  }
  for (int i = 0; i < kProcesses; ++i) {
    int status = 0;
    ASSERT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  std::ifstream runs(counter);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(runs), {}, '\n'), 1);
  EXPECT_EQ(objects().size(), 1u);
}

/// A user without a home, whose temporary files are in a folder of the test's.
class HomelessCache : public MachineCache {
 protected:
  void SetUp() override {
    MachineCache::SetUp();
    unsetenv("TUTTI_EMULATOR_CACHE");
    for (auto& [name, value] : usual_places_) {
      if (const char* usual = std::getenv(name)) value = usual;
      unsetenv(name);
    }
    setenv("TMPDIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : usual_places_) {
      value ? setenv(name, value->c_str(), 1) : unsetenv(name);
    }
    MachineCache::TearDown();
  }

  fs::path mine() const { return folder_ / ("tutti-emulator-" + std::to_string(geteuid())); }

  std::map<const char*, std::optional<std::string>> usual_places_{
      {"HOME", {}}, {"XDG_CACHE_HOME", {}}, {"TMPDIR", {}}};
};

TEST_F(HomelessCache, isAPrivateFolder) {
  EXPECT_EQ(stored(storing(6)), 6);
  EXPECT_EQ(fs::status(mine()).permissions(), fs::perms::owner_all);
  EXPECT_FALSE(fs::is_empty(mine()));
  EXPECT_EQ(stored(storing(6)), 6) << "it is used again";
}

TEST_F(HomelessCache, refusesAFolderOfOthers) {
  const auto expectRefused = [&] {
    try {
      stored(storing(7));
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(mine().string() + " is no folder that only this user"),
                std::string::npos)
          << error.what();
    }
  };
  fs::create_directory(mine());
  fs::permissions(mine(), fs::perms::owner_all | fs::perms::group_write | fs::perms::group_exec);
  expectRefused();
  fs::remove(mine());
  fs::create_directory(folder_ / "elsewhere");
  fs::permissions(folder_ / "elsewhere", fs::perms::owner_all);
  fs::create_directory_symlink(folder_ / "elsewhere", mine());
  expectRefused();
}

TEST_F(MachineCache, leavesNothingHalfDone) {
  const fs::path compiler = folder_ / "failing_compiler";
  std::ofstream(compiler)
      << "#!/bin/sh\nfor last; do :; done\necho half > \"$(echo \"$*\" | sed 's/.*-o \\([^ ]*\\).*/\\1/')\"\n"
         "echo it broke here; exit 1\n";
  fs::permissions(compiler, fs::perms::owner_all);
  setenv("TUTTI_EMULATOR_CXX", compiler.c_str(), 1);
  try {
    stored(storing(5));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("it broke here"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(objects().empty());
  unsetenv("TUTTI_EMULATOR_CXX");
  EXPECT_EQ(stored(storing(5)), 5);
}

}  // namespace
}  // namespace tutti::emulator
