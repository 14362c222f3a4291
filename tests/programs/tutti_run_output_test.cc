// tutti-run: whole lines, prefixes, streams.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"
#include "tests/programs/tutti_run_command.h"

namespace tutti::test {
namespace {

using namespace std::string_literals;

const std::string kTuttiRun = TUTTI_BIN_DIR "/tutti-run";

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
  const ScratchDirectory temp;
  Command command(withScript({"-n", "1"}, R"(printf 'a\r'
                                             until test -e $DIR/go; do sleep 0.02; done
                                             printf '\nb\n')"),
                  {{"DIR", temp.path()}});
  ASSERT_TRUE(command.waitForOutput("[0] a\r", kPatience)) << "a progress line must not be held back";
  temp.addProgram("go", "");
  EXPECT_EQ(command.wait(kPatience).out, "[0] a\r\n[0] b\n");
}

TEST_F(TuttiRun, OutputThatIsLostIsAFailure) {
  const auto run = [](const std::string& to) {
    return runCommand({"sh", "-c", "exec \"$0\" -n 2 sh -c 'echo line' " + to, kTuttiRun});
  };
  const auto lost = run(">/dev/full");
  EXPECT_NE(lost.exit_code, 0);
  const std::string words = "tutti-run: standard output cannot be written: No space left on device; what";
  EXPECT_EQ(lost.err.find(words), 0U) << lost.err;  // before a rank is named that ends for want of a reader
  // Who has read enough, as head does, has lost nothing.
  const auto enough =
      runCommand({"bash", "-c", "\"$0\" -n 2 yes | head -n 1; exit ${PIPESTATUS[0]}", kTuttiRun});
  EXPECT_EQ(enough.err.find("is lost"), std::string::npos) << enough.err;
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

}  // namespace
}  // namespace tutti::test
