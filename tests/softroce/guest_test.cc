// tests/softroce/guest itself, with a QEMU that is a script: how it ends, and what it leaves.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// A folder of planted programs, which come before all others, and a prepared kernel that is none.
class Guest : public testing::Test {
 protected:
  Guest() {
    const std::string scripts = fs::path(TUTTI_GUEST).parent_path().string();
    const std::string version =
        runCommand({"sh", "-c", "cd " + scripts + " && cat prepare-guest guest-init | sha256sum | head -c 8"})
            .out;
    const fs::path kernel = fs::path(folder_.path()) / "cache" / ("1.2.3." + version);
    fs::create_directories(kernel);
    for (const char* name : {"busybox", "vmlinux", "initrd.cpio"}) std::ofstream(kernel / name) << name;
    std::ofstream(kernel / "release") << "1.2.3\n";
    fs::create_directories(fs::path(folder_.path()) / "temporary");
    // What the runner looks for, so that the test needs no packages.
    for (const char* name : {"busybox", "cpio", "depmod", "xz", "zstd", "rdma", "apt-get"})
      plant(name, "exit 1");
    plant("uname", "echo x86_64");
  }

  /// `script` as the program `name`.
  void plant(const std::string& name, const std::string& script) {
    const fs::path path = fs::path(folder_.path()) / "bin" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/bash\n" << script << "\n";
    ::chmod(path.c_str(), 0755);
  }

  /// A QEMU that finds the folder of the run in $run, as the guest would its control folder.
  void plantQemu(const std::string& script) {
    plant("qemu-system-x86_64",
          "for word; do [[ $word != local,id=control,path=* ]] || run=${word#*path=} && run=${run%%,*}; "
          "done\n" +
              ("echo boot >>" + log() + "; echo $$ >" + log() + ".pid\n") + script);
  }

  std::string log() const { return folder_.path() + "/log"; }
  std::string temporary() const { return folder_.path() + "/temporary"; }

  std::map<std::string, std::string> environment() const {
    return {{"PATH", folder_.path() + "/bin:" + std::getenv("PATH")},
            {"TUTTI_GUEST_CACHE", folder_.path() + "/cache"},
            {"TMPDIR", temporary()}};
  }

  CommandResult run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TUTTI_GUEST);
    return runCommand(arguments, environment(), seconds(60));
  }

  int boots() const {
    std::ifstream stream(log());
    int count = 0;
    for (std::string line; std::getline(stream, line);) ++count;
    return count;
  }

  /// Whether the QEMU that was started last, which would go on for longer, ends within a minute.
  bool qemuEnds() const {
    int pid = 0;
    std::ifstream(log() + ".pid") >> pid;
    const auto deadline = std::chrono::steady_clock::now() + seconds(60);
    while (pid > 0 && std::chrono::steady_clock::now() < deadline) {
      if (::kill(pid, 0) != 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  /// Runs with a time that is soon up; with more where QEMU had not even written `written` by then.
  struct TimeUp {
    std::string limit;
    CommandResult result;
  };
  TimeUp runUntilTimeIsUp(const std::string& written) {
    TimeUp last;
    for (const char* const limit : {"2", "10", "50"}) {
      fs::remove(log());
      last = {limit, run({"--timeout", limit, "true"})};
      if (last.result.err.find(written) != std::string::npos) break;
    }
    return last;
  }

  ScratchDirectory folder_;
};

constexpr const char* kStarted = ": >$run/started; exec >$run/out\n";

TEST_F(Guest, OutputAndStatusAreTheCommands) {
  plantQemu(std::string(kStarted) + "seq 100000; source $run/command; echo 7 >$run/status");
  const CommandResult result = run({"echo", "two  words", "*"});
  EXPECT_EQ(result.exit_code, 7) << result.err;
  std::string expected;
  for (int i = 1; i <= 100000; ++i) expected += std::to_string(i) + "\n";
  EXPECT_EQ(result.out, expected + "two  words *\n");
  EXPECT_TRUE(fs::is_empty(temporary()));
}

TEST_F(Guest, AStartThatFailsIsTriedOnceMore) {
  plantQemu("((`wc -l <" + log() + "` == 2)) || exit 3\n" + kStarted + "echo 0 >$run/status");
  const CommandResult result = run({"true"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("it did not start (QEMU's status 3"), std::string::npos) << result.err;
  EXPECT_EQ(boots(), 2);
}

TEST_F(Guest, AQemuThatCannotBeStartedIsNotTriedForEver) {
  plantQemu("echo 'no such machine' >&2; exit 1");
  const CommandResult result = run({"true"});
  EXPECT_EQ(result.exit_code, 125) << result.err;
  EXPECT_NE(result.err.find("no such machine"), std::string::npos) << result.err;
  EXPECT_EQ(boots(), 2);
}

TEST_F(Guest, ACommandIsNeverRepeated) {
  plantQemu(std::string(kStarted) + "exit 3");
  const CommandResult result = run({"true"});
  EXPECT_EQ(result.exit_code, 125) << result.err;
  EXPECT_NE(result.err.find("ended without a status"), std::string::npos) << result.err;
  EXPECT_EQ(boots(), 1);
}

TEST_F(Guest, TimeIsUpAndWhatWasPrintedLast) {
  plantQemu(std::string(kStarted) + "echo 'step 41'; exec sleep 200");
  const auto [limit, result] = runUntilTimeIsUp("step 41");
  EXPECT_EQ(result.exit_code, 124) << result.err;
  EXPECT_NE(result.err.find("ended after " + limit + " s, its time"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("the last lines of the command:\nstep 41\n"), std::string::npos) << result.err;
  EXPECT_TRUE(qemuEnds());
}

TEST_F(Guest, TimeIsUpBeforeTheStart) {
  plantQemu("echo 'Kernel panic' >$run/console; exec sleep 200");
  const auto [limit, result] = runUntilTimeIsUp("Kernel panic");
  EXPECT_EQ(result.exit_code, 124) << result.err;
  EXPECT_NE(result.err.find("Kernel panic"), std::string::npos) << result.err;
  EXPECT_EQ(boots(), 1);
}

TEST_F(Guest, NothingStaysOfARunnerThatIsKilled) {
  plantQemu(std::string(kStarted) + "echo ready; exec sleep 200");
  for (const int signal : {SIGTERM, SIGKILL}) {
    Command runner({TUTTI_GUEST, "true"}, environment());
    ASSERT_TRUE(runner.waitForOutput("ready", seconds(60)));
    ::kill(runner.pid(), signal);  // only the script: its children are not told
    EXPECT_TRUE(qemuEnds()) << signal;
    runner.wait(seconds(60));
    // After SIGKILL the next runner clears up.
    EXPECT_EQ(fs::is_empty(temporary()), signal == SIGTERM);
  }
  plantQemu(std::string(kStarted) + "echo 0 >$run/status");
  EXPECT_EQ(run({"true"}).exit_code, 0);
  EXPECT_TRUE(fs::is_empty(temporary()));
}

TEST_F(Guest, SaysWhyItCannotRun) {
  const auto expectSkipped = [&](const std::string& reason) {
    const CommandResult result = run({"true"});
    EXPECT_EQ(result.exit_code, 77) << result.err;
    EXPECT_EQ(result.out.find("SKIPPED: " + reason), 0U) << result.out;
    EXPECT_EQ(boots(), 0);
  };
  plantQemu("exit 1");
  fs::remove_all(folder_.path() + "/cache");
  plant("apt-get", "exit 100");
  plant("apt-cache", "exit 100");
  expectSkipped("prepare-guest: apt knows no linux-image-amd64");
  plant("apt-cache", "echo '  Depends: linux-image-1.2.3'");
  expectSkipped("prepare-guest: cannot download linux-image-1.2.3");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path() + "/cache"), {}), 1) << "more than the lock";
  plant("uname", "echo aarch64");
  expectSkipped("the guest is an x86-64 machine, this one is aarch64");
}

}  // namespace
}  // namespace tutti::test
