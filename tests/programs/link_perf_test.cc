// link_perf: what it prints and writes over the transports of one machine; wrong data and wrong arguments.
// How fast anything is, no test says.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/harness/scratch_directory.h"
#include "tests/programs/perf_command.h"

namespace tutti::perf {
namespace {

using nlohmann::json;
using test::ScratchDirectory;

json readJson(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

class LinkPerfOver : public testing::TestWithParam<const char*> {};

TEST_P(LinkPerfOver, MeasuresEverySizeOverTheTransportThatItNames) {
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/link.json";
  const CommandResult result = alone(
      "link_perf", {"--transport", GetParam(), "-b", "8", "-e", "512K", "-f", "256", "-n", "12", "-J", path});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(contains(result.out, std::string("# Transport  : ") + GetParam() + "\n"));
  EXPECT_TRUE(matches(result.out,
                      "bytes +iterations +BW peak\\[MiB/sec\\] +BW average\\[MiB/sec\\] +MsgRate\\[Mpps\\]"));
  EXPECT_TRUE(matches(result.out, "bytes +iterations +t_min +t_max +t_typical +t_avg +t_stdev +99%"));
  EXPECT_TRUE(contains(result.out, "# Wrong bytes : 0 OK\n"));
  const std::vector<Arguments> rows = rowsOf(result.out);
  ASSERT_EQ(rows.size(), 6U) << result.out;

  const json report = readJson(path);
  EXPECT_EQ(report["transport"]["name"], GetParam());
  EXPECT_EQ(report["ranks"].size(), 2U);
  EXPECT_EQ(report["errors"], json::array());
  ASSERT_EQ(report["results"].size(), 6U);
  const std::vector<std::size_t> sizes{8, 2048, 524288};
  for (std::size_t i = 0; i < 6; ++i) {
    const json& row = report["results"][i];
    const auto bytes = static_cast<double>(sizes[i % 3]);
    EXPECT_EQ(row["bytes"], sizes[i % 3]);
    EXPECT_EQ(row["test"], i < 3 ? "bw" : "lat");
    EXPECT_EQ(row["iterations"], 12);
    EXPECT_EQ(row["wrong"], 0);
    EXPECT_EQ(rows[i][0], std::to_string(sizes[i % 3]));
    EXPECT_EQ(rows[i].back(), "0");
    if (i < 3) {
      const double average = row["bw_average_bytes_per_s"];
      EXPECT_GT(average, 0);
      EXPECT_GE(row["bw_peak_bytes_per_s"], average);
      EXPECT_NEAR(row["messages_per_s"].get<double>() * bytes / average, 1, 1e-6);
      EXPECT_NEAR(std::stod(rows[i][3]), average / 1048576, 0.01);
    } else {
      EXPECT_GT(row["t_min_us"], 0);
      EXPECT_LE(row["t_min_us"], row["t_typical_us"]);
      EXPECT_LE(row["t_typical_us"], row["t_p99_us"]);
      EXPECT_LE(row["t_p99_us"], row["t_max_us"]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, LinkPerfOver, testing::Values("inproc", "shm", "tcp"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LinkPerf, TakesWhatTheLibraryChoosesUnderALauncher) {
  const CommandResult result = launched(2, "link_perf", {"-t", "lat", "-b", "64", "-e", "64", "-n", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "# Transport  : shm (chosen by the library)\n"));
  EXPECT_EQ(rowsOf(result.out).size(), 1U);
}

TEST(LinkPerf, SeesOneWrongByte) {
  const ScratchDirectory folder;
  const std::string path = folder.path() + "/link.json";
  const CommandResult result =
      alone("link_perf", {"--transport", "shm", "-t", "bw", "-b", "1K", "-e", "1K", "-n", "5", "-R", "0",
                          "--corrupt", "1023", "--json", path});
  EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "# Wrong bytes : 1 FAILED\n"));
  EXPECT_EQ(readJson(path)["wrong"], 1);
}

TEST(LinkPerf, RefusesATransportThatTheRanksDoNotHave) {
  const CommandResult result = launched(2, "link_perf", {"--transport", "tcp", "-n", "1"});
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_TRUE(
      contains(result.err, "--transport tcp: these two ranks are joined by shm; start them on two hosts"));
}

TEST(LinkPerf, RanksThatWereStartedDifferentlyDoNotWaitForEachOther) {
  // By a launcher that gives the second rank, on another host, its own line.
  const CommandResult result =
      runCommand(withLauncher(2) +
                     Arguments{"sh", "-c", "[ $TUTTI_RANK = 0 ] || more='-n 7'; exec \"$0\" -e 64 -n 5 $more",
                               binary("link_perf")},
                 {}, kPatience);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(contains(result.err, "the ranks were started differently: -n: rank 0 has 5, rank 1 has 7"));
}

TEST(LinkPerf, ARankOfAnotherHostIsNotSilentAboutItsArguments) {
  const CommandResult result =
      runCommand({binary("link_perf"), "--nonsense"}, {{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_TRUE(contains(result.err, "--nonsense"));
}

TEST(LinkPerf, RefusesBadArguments) {
  const std::vector<std::pair<Arguments, std::string>> bad{
      {{"--transport", "pigeon"}, "pigeon is not a transport; there are: auto inproc shm tcp verbs cuda_ipc"},
      {{"-b", "0"}, "a message has at least one byte"},
      {{"-b", "2M", "-e", "1M"}, "more than the largest (-e)"},
      {{"-t", "ping"}, "ping is not a test"},
      {{"--transport", "cuda_ipc", "--device", "host"}, "cuda_ipc joins GPUs"},
      {{"--transport", "shm", "--ib-dev", "mlx5_0"}, "--transport shm does not use"},
      {{"--transport", "verbs", "--ib-dev", "a,b,c"}, "expected one name, or two"},
      {{"--transport", "verbs", "--ib-dev", ","}, "--ib-dev"}};
  for (const auto& [arguments, words] : bad) {
    const CommandResult result = alone("link_perf", arguments);
    EXPECT_EQ(result.exit_code, 2) << words;
    EXPECT_TRUE(contains(result.err, words));
  }
  EXPECT_TRUE(contains(launched(3, "link_perf", {}).err, "one link has two ranks, not 3"));
  EXPECT_TRUE(contains(runCommand({binary("link_perf"), "--transport", "tcp"}, {{"NCCL_NET", "IB"}}).err,
                       "--transport tcp: NCCL_NET or NCCL_IB_DISABLE want RDMA"));
  const test::ScratchDirectory scratch;
  const std::string file = scratch.write("conf", "NCCL_IB_DISABLE=1\n");
  EXPECT_TRUE(
      contains(runCommand({binary("link_perf"), "--transport", "verbs"}, {{"NCCL_CONF_FILE", file}}).err,
               "--transport verbs: NCCL_NET or NCCL_IB_DISABLE want TCP"));
}

}  // namespace
}  // namespace tutti::perf
