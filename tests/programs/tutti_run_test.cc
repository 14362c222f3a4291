// tutti-run as its users run it: the real program, with shell scripts as ranks. What ranks find, how programs
// are found, the command line, cores and ports.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iomanip>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "tests/harness/command.h"
#include "tests/harness/free_port.h"
#include "tests/harness/scratch_directory.h"
#include "tests/programs/tutti_run_command.h"

namespace tutti::test {
namespace {

namespace fs = std::filesystem;

const std::string kTuttiRun = TUTTI_BIN_DIR "/tutti-run";

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

const std::string kShowHost =
    "echo $RANK $WORLD_SIZE: $NODE_RANK $GROUP_RANK ${NCCL_HOSTID-none}, $LOCAL_RANK of $LOCAL_WORLD_SIZE";

std::string ownName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

TEST_F(TuttiRun, WithoutHostsAllRanksAreOnThisOne) {
  const auto result = runScript({"-n", "2", "--no-prefix"}, kShowHost);
  EXPECT_EQ(sortedLines(result.out),
            (std::vector<std::string>{"0 2: 0 0 none, 0 of 2", "1 2: 0 0 none, 1 of 2"}));
  const auto named = runScript({"-n", "1", "--no-prefix"}, kShowHost, {{"NCCL_HOSTID", "rack3"}});
  EXPECT_EQ(named.out, "0 1: 0 0 rack3, 0 of 1\n");
}

TEST_F(TuttiRun, HostsAreBlocksOfConsecutiveRanks) {
  const std::string name = ownName();
  const auto even = runScript({"-n", "4", "--hosts", "2", "--no-prefix"}, kShowHost, {{"NODE_RANK", "7"}});
  EXPECT_EQ(even.exit_code, 0) << even.err;
  EXPECT_EQ(sortedLines(even.out),
            (std::vector<std::string>{
                "0 4: 0 0 " + name + "-host0, 0 of 2", "1 4: 0 0 " + name + "-host0, 1 of 2",
                "2 4: 1 1 " + name + "-host1, 0 of 2", "3 4: 1 1 " + name + "-host1, 1 of 2"}));
  const auto uneven = runScript({"-n", "5", "--hosts", "2", "--no-prefix"}, kShowHost);
  EXPECT_EQ(
      sortedLines(uneven.out),
      (std::vector<std::string>{"0 5: 0 0 " + name + "-host0, 0 of 3", "1 5: 0 0 " + name + "-host0, 1 of 3",
                                "2 5: 0 0 " + name + "-host0, 2 of 3", "3 5: 1 1 " + name + "-host1, 0 of 2",
                                "4 5: 1 1 " + name + "-host1, 1 of 2"}));
}

TEST_F(TuttiRun, NoHostIsWithoutARank) {
  const auto result =
      runScript({"-n", "4", "--hosts", "3", "--no-prefix"}, "echo $NODE_RANK $LOCAL_RANK $RANK");
  EXPECT_EQ(sortedLines(result.out), (std::vector<std::string>{"0 0 0", "0 1 1", "1 0 2", "2 0 3"}));
  const auto one =
      runScript({"-n", "2", "--hosts", "1", "--no-prefix"}, "echo $NODE_RANK $LOCAL_RANK $NCCL_HOSTID");
  EXPECT_EQ(sortedLines(one.out),
            (std::vector<std::string>{"0 0 " + ownName() + "-host0", "0 1 " + ownName() + "-host0"}));
}

TEST_F(TuttiRun, RanksUseLoopbackUnlessTheUserChose) {
  const std::string show = "echo $NCCL_SOCKET_IFNAME";
  EXPECT_EQ(runScript({"-n", "1", "--no-prefix"}, show, {{"NCCL_SOCKET_IFNAME", ""}}).out, "lo\n");
  EXPECT_EQ(runScript({"-n", "1", "--no-prefix"}, show, {{"NCCL_SOCKET_IFNAME", "=lo"}}).out, "=lo\n");
  const ScratchDirectory temp;
  const std::string file = temp.write("conf", "NCCL_SOCKET_IFNAME=lo,eth\n");
  const auto by_file = runCommand({"env", "-u", "NCCL_SOCKET_IFNAME", programFolder() + "/tutti-run", "-n",
                                   "1", "--no-prefix", "sh", "-c", "echo ${NCCL_SOCKET_IFNAME-none}"},
                                  {{"NCCL_CONF_FILE", file}});
  EXPECT_EQ(by_file.out, "none\n") << "the ranks read the file themselves" << by_file.err;
}

TEST_F(TuttiRun, TheIdFileIsPrivateAndRemovedAfterwards) {
  const ScratchDirectory temp;
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
  const ScratchDirectory temp;
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
  const ScratchDirectory temp;
  temp.addProgram("tutti-run", "#!/bin/sh\necho impostor\n");
  const std::vector<std::string> argv{kTuttiRun, "-n", "1", "tutti-run", "--version"};
  const auto in_path = runCommand(argv, {{"PATH", temp.path() + ":" TUTTI_BIN_DIR}});
  EXPECT_EQ(in_path.out, "[0] impostor\n") << in_path.err;
  const auto not_in_path = runCommand(argv, {{"PATH", temp.path()}});
  EXPECT_TRUE(not_in_path.out.starts_with("[0] tutti-run ")) << not_in_path.out;
}

TEST_F(TuttiRun, SaysWhyAProgramCannotRun) {
  const ScratchDirectory temp;
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
      {{"-n", "2", "--hosts", "0", "true"}, "from 1 to 1024, got '0'"},
      {{"-n", "2", "--hosts", "-1", "true"}, "from 1 to 1024, got '-1'"},
      {{"-n", "2", "--hosts", "two", "true"}, "from 1 to 1024, got 'two'"},
      {{"-n", "2", "--hosts", "3", "true"}, "3 hosts are more than 2 ranks"},
      {{"--hosts", "2", "-n", "1", "true"}, "2 hosts are more than 1 rank"},
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
  for (const auto* word :
       {"--hosts", "--bind", "--port", "--grace", "--kill-after", "--no-prefix", "/dev/null"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  const auto version = runCommand({"tutti-run", "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(lines(version.out).size(), 1U) << version.out;
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
  const int port = freePort();
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
