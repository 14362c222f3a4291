// tutti-run: failures, signals, and what is left behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"
#include "tests/programs/tutti_run_command.h"

namespace tutti::test {
namespace {

const std::string kTuttiRun = TUTTI_BIN_DIR "/tutti-run";

// --- failures ---

TEST_F(TuttiRun, SaysWhichRankFailedAndHow) {
  const auto exited = runScript({"-n", "3", "--kill-after", "1000"}, "test $RANK = 1 && exit 3; exit 0");
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_NE(exited.err.find("tutti-run: rank 1 (pid "), std::string::npos) << exited.err;
  EXPECT_NE(exited.err.find(") exited with status 3\n"), std::string::npos) << exited.err;
  EXPECT_NE(exited.err.find("ranks 0, 2 exited with status 0\n"), std::string::npos) << exited.err;

  const auto killed = runScript({"-n", "1"}, "kill -9 $$");
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
  EXPECT_NE(killed.err.find(") was killed by signal 9 (Killed)\n"), std::string::npos) << killed.err;
}

// The other ranks fail only once they have seen that rank 1 is dead, as ranks do whose peer is gone.
TEST_F(TuttiRun, TheFirstFailureIsNamedAndDecidesTheExitStatus) {
  struct Case {
    std::string first;
    std::string consequence;
    int status;
    std::string words;
  };
  const std::vector<Case> cases{
      {"kill -9 $$", "exit 1", 128 + SIGKILL, ") was killed by signal 9 (Killed)\n"},
      {"exit 4", "kill -SEGV $$", 4, ") exited with status 4\n"},
  };
  for (const auto& c : cases) {
    const ScratchDirectory temp;
    const auto result = runScript(
        {"-n", "3", "--kill-after", "1000"},
        "if test $RANK = 1; then echo $$ > $DIR/t && mv $DIR/t $DIR/pid; " + c.first + "; fi\n" +
            "until test -s $DIR/pid; do sleep 0.02; done; pid=$(cat $DIR/pid)\n" +
            "until grep -q 'State:.Z' /proc/$pid/status; do sleep 0.02; done; echo why $RANK >&2\n" +
            c.consequence,
        {{"DIR", temp.path()}});
    EXPECT_EQ(result.exit_code, c.status) << result.err;
    EXPECT_NE(result.err.find("tutti-run: rank 1 (pid "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(c.words), std::string::npos) << result.err;
    EXPECT_EQ(count(result.err, "(pid "), 1U) << "one rank is named: " << result.err;
    EXPECT_NE(result.err.find("[0] why 0\n"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("[2] why 2\n"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("the others: ranks 0, 2 "), std::string::npos) << result.err;
  }
}

TEST_F(TuttiRun, StragglersAreStoppedAfterAFailure) {
  const auto result = runScript({"-n", "3", "--kill-after", "0.1", "--grace", "1000"},
                                "test $RANK = 2 && exit 5; exec sleep 1000");
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_NE(result.err.find("ranks 0-1 stopped by tutti-run with SIGTERM\n"), std::string::npos)
      << result.err;
}

TEST_F(TuttiRun, StragglersThatIgnoreSigtermAreKilledWithTheirChildren) {
  const ScratchDirectory temp;
  const auto result = runScript({"-n", "2", "--kill-after", "0.1", "--grace", "0.2"},
                                R"(trap '' TERM; sleep 1000 & echo child=$!; : > $DIR/$RANK
                                   until test -e $DIR/0; do sleep 0.02; done
                                   test $RANK = 1 && exit 5; while :; do sleep 1; done)",
                                {{"DIR", temp.path()}});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_NE(result.err.find("rank 0 stopped by tutti-run with SIGKILL\n"), std::string::npos) << result.err;
  const auto children = numbersAfter(result.out, "child=");
  EXPECT_EQ(children.size(), 2U) << result.out;
  for (const int pid : children) EXPECT_TRUE(awaitGone(pid)) << pid;
}

TEST_F(TuttiRun, WhatARankLeavesBehindIsEnded) {
  const auto result = runScript({"-n", "1"}, "sleep 1000 & echo child=$!");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.timed_out);
  const auto left = numbersAfter(result.out, "child=");
  ASSERT_EQ(left.size(), 1U) << result.out;
  EXPECT_TRUE(awaitGone(left[0]));
}

// --- signals ---

TEST_F(TuttiRun, ForwardsStopSignals) {
  const std::map<int, std::string> signals{
      {SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGQUIT, "QUIT"}};
  for (const auto& [signal, name] : signals) {
    const ScratchDirectory temp;
    Command command(withScript({"-n", "2", "--grace", "1000"},
                               "trap 'echo got; exit 7' " + name + "; echo ready; while :; do sleep 1; done"),
                    {{"TMPDIR", temp.path()}});
    ASSERT_TRUE(awaitReady(command, 2)) << name;
    command.kill(signal);
    const auto result = command.wait(kPatience);
    EXPECT_EQ(result.exit_code, 7) << name << result.err;
    EXPECT_EQ(count(result.out, "got\n"), 2U) << name << result.out;
    EXPECT_NE(result.err.find("tutti-run: stopped by SIG" + name + ": ranks 0-1 exited with status 7\n"),
              std::string::npos)
        << result.err;
    EXPECT_TRUE(temp.empty()) << name;
  }
}

TEST_F(TuttiRun, ForwardsUserSignalsAndGoesOn) {
  Command command(withScript({"-n", "2", "--grace", "0"},
                             "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; "
                             "while :; do sleep 1; done"));
  ASSERT_TRUE(awaitReady(command, 2));
  command.kill(SIGUSR1);
  ASSERT_TRUE(command.waitForOutput("[0] one", kPatience));
  ASSERT_TRUE(command.waitForOutput("[1] one", kPatience));
  command.kill(SIGUSR2);
  const auto result = command.wait(kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(count(result.out, "two\n"), 2U);
}

TEST_F(TuttiRun, RanksThatIgnoreAStopSignalAreKilledAfterTheGraceTime) {
  Command command(
      withScript({"-n", "2", "--grace", "0.2"}, "trap '' TERM; echo ready; while :; do sleep 1; done"));
  ASSERT_TRUE(awaitReady(command, 2));
  command.kill(SIGTERM);
  const auto result = command.wait(kPatience);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_NE(result.err.find("ranks 0-1 stopped by tutti-run with SIGKILL\n"), std::string::npos)
      << result.err;
}

TEST_F(TuttiRun, ASecondSigintKills) {
  Command command(withScript({"-n", "2", "--grace", "1000"},
                             "trap 'echo got' INT; echo ready; while :; do sleep 1; done"));
  ASSERT_TRUE(awaitReady(command, 2));
  command.kill(SIGINT);
  ASSERT_TRUE(command.waitForOutput("[0] got", kPatience));
  ASSERT_TRUE(command.waitForOutput("[1] got", kPatience));
  command.kill(SIGINT);
  const auto result = command.wait(kPatience);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
}

TEST_F(TuttiRun, ASignalThatWasIgnoredAtTheStartStaysIgnored) {
  Command command({"sh", "-c", R"(trap '' HUP; exec "$0" "$@")", kTuttiRun, "-n", "1", "--grace", "0", "sh",
                   "-c", "trap 'echo one; exit 0' USR1; echo ready; while :; do sleep 1; done"});
  ASSERT_TRUE(awaitReady(command, 1));
  command.kill(SIGHUP);
  command.kill(SIGUSR1);
  const auto result = command.wait(kPatience);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("[0] one\n"), std::string::npos) << result.out;
}

TEST_F(TuttiRun, RanksAreWaitedForEvenWhereSigchldIsIgnored) {
  const auto result = runCommand(
      {"env", "--ignore-signal=CHLD", kTuttiRun, "-n", "2", "sh", "-c", "exit $RANK"}, {}, kPatience);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find(") exited with status 1\n"), std::string::npos) << result.err;
}

TEST_F(TuttiRun, NoRankOutlivesALauncherThatIsKilled) {
  const ScratchDirectory temp;
  Command command(withScript({"-n", "3"}, "echo pid=$$.; echo ready; exec sleep 1000"),
                  {{"TMPDIR", temp.path()}});
  ASSERT_TRUE(awaitReady(command, 3));
  command.kill(SIGKILL);
  const auto result = command.wait(kPatience);
  EXPECT_EQ(result.signal, SIGKILL);
  const auto pids = numbersAfter(result.out, "pid=");
  ASSERT_EQ(pids.size(), 3U) << result.out;
  for (const int pid : pids) EXPECT_TRUE(awaitGone(pid)) << pid;
}

TEST_F(TuttiRun, AStalledReaderHoldsNeitherTheOtherStreamNorSignals) {
  const ScratchDirectory temp;
  // Nobody reads the launcher's standard output: the shell holds both ends of the FIFO.
  Command command({"sh", "-c", R"(mkfifo "$1/p" && exec 9<>"$1/p" && exec "$0" -n 1 sh -c "$2" 2>&1 >&9)",
                   kTuttiRun, temp.path(), "yes & sleep 0.3; echo ready >&2; wait"});
  ASSERT_TRUE(awaitReady(command, 1));
  command.kill(SIGTERM);
  ASSERT_TRUE(command.waitForOutput("tutti-run: stopped by SIGTERM: rank 0 killed by", kPatience));
  command.kill(SIGTERM);  // ends the wait for the reader
  const auto result = command.wait(kPatience);
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(result.timed_out);
}

}  // namespace
}  // namespace tutti::test
