// tutti-run as its users run it: the real program, with shell scripts as ranks.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/harness/command.h"

namespace tutti::test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using std::chrono::seconds;
using Environment = std::map<std::string, std::string>;

const std::string kTuttiRun = TUTTI_BIN_DIR "/tutti-run";
constexpr seconds kPatience{60};

/// A fresh directory, removed with its contents.
class TempDirectory {
 public:
  TempDirectory() : path_((fs::temp_directory_path() / "tutti-run-test.XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  bool empty() const { return fs::is_empty(path_); }
  /// Writes an executable file and returns its path.
  std::string addProgram(const std::string& name, const std::string& text) const {
    auto path = path_ + "/" + name;
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

 private:
  std::string path_;
};

/// argv of tutti-run with `options` and a shell script for each rank.
std::vector<std::string> withScript(std::vector<std::string> options, const std::string& script) {
  options.insert(options.begin(), "tutti-run");
  options.insert(options.end(), {"sh", "-c", script});
  return options;
}

CommandResult runScript(std::vector<std::string> options, const std::string& script,
                        const Environment& environment = {}) {
  return runCommand(withScript(std::move(options), script), environment, kPatience);
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

std::vector<std::string> sortedLines(const std::string& text) {
  auto result = lines(text);
  std::sort(result.begin(), result.end());
  return result;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t result = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++result;
  return result;
}

/// Numbers that follow `label` in the output.
std::vector<int> numbersAfter(const std::string& text, const std::string& label) {
  std::vector<int> result;
  for (auto at = text.find(label); at != std::string::npos; at = text.find(label, at + 1)) {
    result.push_back(std::stoi(text.substr(at + label.size())));
  }
  return result;
}

/// A zombie that nobody reaps counts as gone.
bool gone(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) return line.find('Z') != std::string::npos;
  }
  return true;
}

bool awaitGone(int pid) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!gone(pid)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool awaitReady(Command& command, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!command.waitForOutput("[" + std::to_string(rank) + "] ready", kPatience)) return false;
  }
  return true;
}

class TuttiRun : public testing::Test {
 protected:
  // Whoever started the tests (nohup, a background job) may ignore these, and children would inherit it.
  static void SetUpTestSuite() {
    for (const int signal : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_DFL);
  }
};

// --- what a rank finds ---

TEST_F(TuttiRun, EachRankFindsItsNumbersInTheEnvironment) {
  const auto result = runScript(
      {"-n", "3"}, "echo $TUTTI_RANK $TUTTI_WORLD_SIZE $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE",
      {{"RANK", "77"}, {"TUTTI_WORLD_SIZE", "88"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> expected{"[0] 0 3 0 3 0 3", "[1] 1 3 1 3 1 3", "[2] 2 3 2 3 2 3"};
  EXPECT_EQ(sortedLines(result.out), expected);
  EXPECT_EQ(result.err, "");
}

TEST_F(TuttiRun, TheIdFileIsPrivateAndRemovedAfterwards) {
  const TempDirectory temp;
  const auto result = runScript({"-n", "2", "--no-prefix"},
                                R"(stat -c '%a %s %F' "$TUTTI_ID_FILE"
                                   stat -c '%a %F' "${TUTTI_ID_FILE%/*}"
                                   cksum < "$TUTTI_ID_FILE"; echo "$TUTTI_ID_FILE")",
                                {{"TMPDIR", temp.path()}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto all = lines(result.out);
  ASSERT_EQ(all.size(), 8U) << result.out;
  EXPECT_EQ(count(result.out, "600 128 regular file\n"), 2U) << result.out;
  EXPECT_EQ(count(result.out, "700 directory\n"), 2U) << result.out;
  EXPECT_EQ(count(result.out, temp.path() + "/"), 2U) << result.out;
  EXPECT_TRUE(temp.empty());
  auto distinct = all;  // both ranks saw the same file and bytes
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_EQ(distinct.size(), 4U) << result.out;
}

TEST_F(TuttiRun, TheIdFilePathIsAbsoluteForARelativeTmpdir) {
  const TempDirectory temp;
  const auto result = runCommand({"sh", "-c",
                                  R"(cd "$1" && mkdir t && export TMPDIR=t
                                     exec "$0" -n 1 sh -c 'cd / && wc -c < "$TUTTI_ID_FILE"')",
                                  kTuttiRun, temp.path()});
  EXPECT_EQ(result.out, "[0] 128\n") << result.err;
}

TEST_F(TuttiRun, AMissingTmpdirIsNamed) {
  const auto result = runScript({"-n", "1"}, "echo ran", {{"TMPDIR", "/nonexistent"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("/nonexistent"), std::string::npos) << result.err;
}

TEST_F(TuttiRun, StandardInputIsDevNull) {
  const auto result = runScript({"-n", "2"}, "readlink /proc/$$/fd/0; wc -c");
  const std::vector<std::string> expected{"[0] /dev/null", "[0] 0", "[1] /dev/null", "[1] 0"};
  EXPECT_EQ(sortedLines(result.out), expected);
}

TEST_F(TuttiRun, RanksInheritNoDescriptorOfTheLauncher) {
  const std::string list = "for f in /proc/$$/fd/*; do echo ${f##*/}; done; ulimit -n";
  const auto direct = runCommand({"sh", "-c", list});
  const auto launched = runScript({"-n", "2", "--no-prefix"}, "test $RANK = 0 && exit 0; " + list);
  EXPECT_EQ(launched.out, direct.out);
}

TEST_F(TuttiRun, RanksGetTheSignalMaskAndDispositionsOfTheLaunchersParent) {
  const std::string list = "grep -E 'Sig(Blk|Ign)' /proc/self/status";
  EXPECT_EQ(runScript({"-n", "1", "--no-prefix"}, list).out, runCommand({"sh", "-c", list}).out);
}

TEST_F(TuttiRun, SixtyFourRanks) {
  const auto result = runScript({"-n", "64"}, "echo $RANK");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(lines(result.out).size(), 64U);
  EXPECT_NE(result.out.find("[ 7] 7\n"), std::string::npos);
  EXPECT_NE(result.out.find("[63] 63\n"), std::string::npos);
}

// --- finding the program ---

TEST_F(TuttiRun, FindsAProgramNextToItself) {
  const auto result = runCommand({"tutti-run", "-n", "1", "tutti-run", "--version"}, {{"PATH", "/bin"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("[0] tutti-run ")) << result.out;
}

TEST_F(TuttiRun, OrderOfPathDecidesWhenItsOwnDirectoryIsInIt) {
  const TempDirectory temp;
  temp.addProgram("tutti-run", "#!/bin/sh\necho impostor\n");
  const std::vector<std::string> argv{kTuttiRun, "-n", "1", "tutti-run", "--version"};
  const auto in_path = runCommand(argv, {{"PATH", temp.path() + ":" TUTTI_BIN_DIR}});
  EXPECT_EQ(in_path.out, "[0] impostor\n") << in_path.err;
  const auto not_in_path = runCommand(argv, {{"PATH", temp.path()}});
  EXPECT_TRUE(not_in_path.out.starts_with("[0] tutti-run ")) << not_in_path.out;
}

TEST_F(TuttiRun, SaysWhyAProgramCannotRun) {
  const TempDirectory temp;
  const auto no_interpreter = temp.addProgram("no_interpreter", "#!/nonexistent\n");
  const auto garbage = temp.addProgram("garbage", "\x01garbage");
  const auto plain = temp.addProgram("plain", "text");
  fs::permissions(plain, fs::perms::owner_read);
  struct Case {
    std::string program;
    int status;
    std::string words;
  };
  const std::vector<Case> cases{
      {"no-such-program", 127, "'no-such-program' was not found"},
      {"/no/such/program", 127, "'/no/such/program' was not found"},
      {no_interpreter, 127, "interpreter"},
      {garbage, 126, "Exec format error"},
      {plain, 126, "not an executable file"},
      {temp.path(), 126, "not an executable file"},
  };
  for (const auto& c : cases) {
    const auto result = runCommand({"tutti-run", "-n", "2", c.program}, {{"TMPDIR", temp.path()}});
    EXPECT_EQ(result.exit_code, c.status) << c.program;
    EXPECT_NE(result.err.find(c.words), std::string::npos) << c.program << ": " << result.err;
    EXPECT_EQ(lines(result.err).size(), 1U) << result.err;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), {}), 3) << "the id's directory is left";
}

// --- the command line ---

TEST_F(TuttiRun, RefusesBadUsage) {
  struct Case {
    std::vector<std::string> arguments;
    std::string words;
  };
  const std::vector<Case> cases{
      {{}, "-n is required"},
      {{"true"}, "-n is required"},
      {{"-n"}, "-n"},
      {{"-n", "2"}, "PROGRAM is required"},
      {{"-n", "2", "--"}, "PROGRAM is required"},
      {{"-n", "2", ""}, "PROGRAM is required"},
      {{"-n", "0", "true"}, "from 1 to 1024, got '0'"},
      {{"-n", "-3", "true"}, "from 1 to 1024, got '-3'"},
      {{"-n", "abc", "true"}, "from 1 to 1024, got 'abc'"},
      {{"-n", "4x", "true"}, "from 1 to 1024, got '4x'"},
      {{"-n", "5000", "true"}, "from 1 to 1024, got '5000'"},
      {{"-n", "99999999999999999999", "true"}, "from 1 to 1024"},
      {{"-n", "1", "-n", "2", "true"}, "-n"},
      {{"-n", "2", "--frobnicate", "true"}, "--frobnicate"},
      {{"-n", "2", "-x", "true"}, "-x"},
      {{"-n", "2", "--port", "0", "true"}, "--port"},
      {{"-n", "2", "--port", "65536", "true"}, "--port"},
      {{"-n", "2", "--grace", "nan", "true"}, "--grace"},
      {{"-n", "2", "--grace", "-1", "true"}, "--grace"},
      {{"-n", "2", "--kill-after", "soon", "true"}, "--kill-after"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> argv{"tutti-run"};
    argv.insert(argv.end(), c.arguments.begin(), c.arguments.end());
    const auto result = runCommand(argv);
    const auto shown = testing::PrintToString(c.arguments);
    EXPECT_EQ(result.exit_code, 2) << shown;
    EXPECT_EQ(result.out, "") << shown;
    EXPECT_TRUE(result.err.starts_with("tutti-run: ")) << shown << result.err;
    EXPECT_NE(result.err.find(c.words), std::string::npos) << shown << result.err;
  }
}

TEST_F(TuttiRun, EverythingAfterTheProgramBelongsToIt) {
  const std::vector<std::string> tail{"sh", "-c",    R"(printf '%s|' "$@")", "sh", "-n", "7", "--help",
                                      "--", "--bind"};
  for (const bool dashes : {false, true}) {
    std::vector<std::string> argv{"tutti-run", "-n", "1"};
    if (dashes) argv.emplace_back("--");
    argv.insert(argv.end(), tail.begin(), tail.end());
    const auto result = runCommand(argv);
    EXPECT_EQ(result.out, "[0] -n|7|--help|--|--bind|\n") << result.err;
  }
}

TEST_F(TuttiRun, HelpAndVersion) {
  const auto help = runCommand({"tutti-run", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const auto* word : {"--bind", "--port", "--grace", "--kill-after", "--no-prefix", "/dev/null"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  const auto version = runCommand({"tutti-run", "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(lines(version.out).size(), 1U) << version.out;
}

// --- output ---

TEST_F(TuttiRun, KeepsTheStreamsApartAndPrefixesBoth) {
  const auto result = runScript({"-n", "2"}, "echo out; echo err >&2; echo; echo last");
  EXPECT_EQ(sortedLines(result.out),
            (std::vector<std::string>{"[0] ", "[0] last", "[0] out", "[1] ", "[1] last", "[1] out"}));
  EXPECT_EQ(sortedLines(result.err), (std::vector<std::string>{"[0] err", "[1] err"}));
}

TEST_F(TuttiRun, PassesBytesOnAsTheyAre) {
  const auto result = runScript({"-n", "1"}, R"(printf 'a\000b\377\n10%%\r20%%\rdos\r\npart')");
  const std::string expected = "[0] a\0b\377\n[0] 10%\r[0] 20%\r[0] dos\r\n[0] part\n"s;
  EXPECT_EQ(result.out, expected);
}

TEST_F(TuttiRun, ALineEndMayArriveInTwoParts) {
  const TempDirectory temp;
  Command command(withScript({"-n", "1"}, R"(printf 'a\r'
                                             until test -e $DIR/go; do sleep 0.02; done
                                             printf '\nb\n')"),
                  {{"DIR", temp.path()}});
  ASSERT_TRUE(command.waitForOutput("[0] a\r", kPatience)) << "a progress line must not be held back";
  temp.addProgram("go", "");
  EXPECT_EQ(command.wait(kPatience).out, "[0] a\r\n[0] b\n");
}

TEST_F(TuttiRun, WithoutPrefix) {
  const auto result = runScript({"-n", "2", "--no-prefix"}, "echo line; printf part");
  EXPECT_EQ(sortedLines(result.out), (std::vector<std::string>{"line", "line", "part", "part"}));
}

TEST_F(TuttiRun, SplitsVeryLongLines) {
  const auto result = runScript({"-n", "1"}, "head -c 2500000 /dev/zero | tr '\\0' x; echo; echo end");
  const auto all = lines(result.out);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0], "[0] " + std::string(1 << 20, 'x'));
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], "[0] " + std::string(2500000 - (2 << 20), 'x'));
  EXPECT_EQ(all[3], "[0] end");
}

TEST_F(TuttiRun, LinesStayWholeAndInOrderUnderLoad) {
  constexpr int kRanks = 8;
  constexpr int kLines = 2000;
  // Both streams of the launcher go into one pipe; awk's buffers end in the middle of lines.
  const std::string program =
      R"(BEGIN { for (i = 0; i < n; i++) { s = r " out " i " "; e = r " err " i " ";
                 for (k = 0; k < i % 40; k++) { s = s "0123456789"; e = e "abc" }
                 print s "."; print e "." > "/dev/stderr" } })";
  const auto result =
      runCommand({"sh", "-c", R"(exec "$0" "$@" 2>&1)", kTuttiRun, "-n", std::to_string(kRanks), "sh", "-c",
                  R"(exec awk -v r=$RANK -v n=$0 "$1")", std::to_string(kLines), program});
  EXPECT_EQ(result.exit_code, 0);
  std::map<std::string, int> next;  // by rank and stream
  for (const auto& line : lines(result.out)) {
    std::istringstream words(line);
    std::string prefix;
    std::string rank;
    std::string stream;
    int number = -1;
    words >> prefix >> rank >> stream >> number;
    ASSERT_EQ(number, next[rank + stream]++) << line;
    std::ostringstream expected;
    expected << "[" << rank << "] " << rank << " " << stream << " " << number << " ";
    for (int k = 0; k < number % 40; ++k) expected << (stream == "out" ? "0123456789" : "abc");
    ASSERT_EQ(line, expected.str() + ".");
  }
  EXPECT_EQ(next.size(), 2U * kRanks);
  for (const auto& [what, lines_seen] : next) EXPECT_EQ(lines_seen, kLines) << what;
}

TEST_F(TuttiRun, ARankThatNobodyReadsFromEnds) {
  const auto result = runCommand({"sh", "-c", R"("$0" -n 2 yes | head -n 1)", kTuttiRun});
  EXPECT_FALSE(result.timed_out);
  EXPECT_TRUE(result.out.ends_with("] y\n")) << result.out;
}

// --- failures ---

TEST_F(TuttiRun, SaysWhichRankFailedAndHow) {
  const auto exited = runScript({"-n", "3"}, "test $RANK = 1 && exit 3; exit 0");
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
    const TempDirectory temp;
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
  const auto result = runScript({"-n", "2", "--kill-after", "0.1", "--grace", "0.2"},
                                R"(trap '' TERM; sleep 1000 & echo child=$!
                                   test $RANK = 1 && exit 5; while :; do sleep 1; done)");
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
    const TempDirectory temp;
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
  const TempDirectory temp;
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
  const TempDirectory temp;
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

// --- --bind and --port ---

std::vector<int> ownCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return {};
  std::vector<int> result;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) result.push_back(core);
  }
  return result;
}

TEST_F(TuttiRun, BindGivesEachRankOneCoreInTurn) {
  const auto cores = ownCores();
  if (cores.empty() || cores.size() >= 1024) GTEST_SKIP() << cores.size() << " cores";
  const auto ranks = cores.size() + 1;
  const auto result = runScript({"-n", std::to_string(ranks), "--bind", "--no-prefix"},
                                "echo $RANK $(grep Cpus_allowed_list /proc/self/status)");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::vector<std::string> expected;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    expected.push_back(std::to_string(rank) +
                       " Cpus_allowed_list: " + std::to_string(cores[rank % cores.size()]));
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sortedLines(result.out), expected);
  EXPECT_EQ(count(result.err, "share"), 1U) << result.err;
}

TEST_F(TuttiRun, WithoutBindTheAffinityIsKept) {
  const std::string show = "grep Cpus_allowed_list /proc/self/status";
  EXPECT_EQ(runScript({"-n", "1", "--no-prefix"}, show).out, runCommand({"sh", "-c", show}).out);
}

/// A TCP socket that listens on a port of the kernel's choice.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_, generic, size) != 0 || ::listen(fd_, 1) != 0 || ::getsockname(fd_, generic, &size) != 0) {
      throw std::system_error(errno, std::generic_category(), "listen");
    }
    port_ = ntohs(address.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(fd_); }
  int port() const { return port_; }

 private:
  int fd_;
  int port_ = 0;
};

TEST_F(TuttiRun, APortInUseIsRefused) {
  const Listener taken;
  const auto result = runScript({"-n", "2", "--port", std::to_string(taken.port())}, "echo ran");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("tutti-run: ")) << result.err;
  EXPECT_NE(result.err.find(std::to_string(taken.port())), std::string::npos) << result.err;
}

TEST_F(TuttiRun, ListensOnThePortAndKeepsItFromTheRanks) {
  const int port = Listener().port();  // free again
  std::ostringstream hex;
  hex << ":" << std::uppercase << std::hex << std::setw(4) << std::setfill('0') << port;
  const auto result = runScript({"-n", "1", "--no-prefix", "--port", std::to_string(port)},
                                "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -c '" + hex.str() +
                                    " 0*:0000 0A'; echo ${TUTTI_BOOTSTRAP_PORT-unset}");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "1\nunset\n");
}

}  // namespace
}  // namespace tutti::test
