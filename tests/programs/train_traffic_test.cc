// What averaging moves: counted by the library while tutti-train runs, and computed by --explain-traffic. The
// expected values are 2 (n - 1) times the gradient (Patarasuk, Yuan 2009), with the gradient's size from the
// shape of the network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
#include "tests/programs/train_command.h"
#include "tools/train/traffic.h"

namespace {

using ::testing::HasSubstr;
using tutti::test::both;
using tutti::test::CommandResult;
using tutti::test::contentOf;
using tutti::test::documentOf;
using tutti::test::ScratchDirectory;
using tutti::test::trainAlone;
using tutti::test::trainOn;
using tutti::test::trainOnHosts;
using namespace tutti::train;  // NOLINT(google-build-using-namespace)

/// 9 distinct characters, so that the sizes below can be written down.
const std::string kText =
    "abcdefghi ihgfedcba abc ihg def abc ghi fed cba ihg abcdefghi";  // and the blank: 10
constexpr std::uint64_t kSymbols = 10;

/// embedding [V x 4], dense1 [3 * 4 x 6] and bias, output [6 x V] and bias.
constexpr std::uint64_t kParameters = kSymbols * 4 + (3 * 4 * 6 + 6) + (6 * kSymbols + kSymbols);

std::vector<std::string> smallNetwork(const ScratchDirectory& scratch) {
  return {"--data",      scratch.write("text", kText),
          "--context",   "3",
          "--embedding", "4",
          "--hidden",    "6",
          "--layers",    "1"};
}

struct Work {
  std::vector<std::string> options;
  std::function<std::uint64_t(std::uint64_t nranks)> sequences;  // per step
};

void expectRingPayload(const ScratchDirectory& scratch, const Work& work, std::uint64_t nranks,
                       const std::string& dtype) {
  const std::uint64_t gradient = kParameters * (dtype == "fp64" ? 8 : 4);
  const std::string json = scratch.path() + "/run.json";
  std::vector<std::string> arguments = smallNetwork(scratch);
  arguments.insert(arguments.end(), {"--steps", "3", "--dtype", dtype, "--json", json});
  arguments.insert(arguments.end(), work.options.begin(), work.options.end());
  const CommandResult result = trainOn(static_cast<int>(nranks), arguments);
  SCOPED_TRACE(testing::Message() << nranks << " ranks, " << dtype << " " << work.options.front() << "\n"
                                  << both(result));
  ASSERT_EQ(result.exit_code, 0);
  const nlohmann::json document = documentOf(json);
  EXPECT_EQ(document["payload"]["gradient_bytes"], gradient);
  ASSERT_EQ(document["steps"].size(), 4U);
  for (std::size_t step = 1; step <= 3; ++step) {
    EXPECT_EQ(document["steps"][step]["payload_bytes"], 2 * (nranks - 1) * gradient) << "step " << step;
  }
  EXPECT_EQ(document["payload"]["equals_ring"], true);
  EXPECT_EQ(document["configuration"]["batch"]["sequences"], work.sequences(nranks));
}

TEST(TrainPayload, IsTwiceTheOthersTimesTheGradientWhateverTheWork) {
  const ScratchDirectory scratch;
  const auto fixed = [](std::uint64_t count) { return [count](std::uint64_t) { return count; }; };
  const auto uneven = [](std::uint64_t nranks) { return (nranks + 1) / 2 * 4 + nranks / 2 * 400; };
  const std::vector<Work> works{{{"--batch", "12"}, fixed(12)},
                                {{"--batch", "480"}, fixed(480)},
                                {{"--batch", "12", "--sequence", "20"}, fixed(12)},
                                {{"--uneven"}, uneven},
                                {{"--uneven", "--sequence", "5"}, uneven}};
  for (const std::uint64_t nranks : {2U, 3U, 4U}) {
    for (const std::string dtype : {"fp32", "fp64"}) {
      for (const Work& work : works) expectRingPayload(scratch, work, nranks, dtype);
    }
  }
}

TEST(TrainPayload, IsNothingWithoutAveragingAndAlone) {
  const ScratchDirectory scratch;
  std::vector<std::string> arguments = smallNetwork(scratch);
  arguments.insert(arguments.end(), {"--steps", "2", "--batch", "8"});
  const CommandResult alone = trainAlone(arguments);
  EXPECT_THAT(alone.out, HasSubstr("payload: 0 bytes per step")) << both(alone);
  arguments.emplace_back("--no-average");
  const CommandResult apart = trainOn(2, arguments);
  EXPECT_THAT(apart.out, HasSubstr("payload: 0 bytes per step")) << both(apart);
}

TEST(TrainPayload, IsSaidInWords) {
  const ScratchDirectory scratch;
  std::vector<std::string> arguments = smallNetwork(scratch);
  arguments.insert(arguments.end(), {"--steps", "2", "--batch", "8"});
  const CommandResult result = trainOn(4, arguments);
  // 188 parameters x 4 bytes = 752; x 6 = 4512.
  static_assert(kParameters == 188);
  EXPECT_THAT(result.out,
              HasSubstr("payload: 4512 bytes per step over all ranks, exactly 2(n-1) = 6 times the "
                        "gradient's 752"))
      << both(result);
}

/// Bytes between hosts of every step, by the algorithm that TUTTI_PLAN names, and what is said of them.
struct HostsCase {
  std::string plan;
  int nranks;
  int hosts;
  std::uint64_t payload;  // in gradients
  std::uint64_t network;
  std::string words;
};

TEST(TrainPayload, BetweenHostsIsThatOfTheAlgorithm) {
  const ScratchDirectory scratch;
  const std::string json = scratch.path() + "/run.json";
  std::vector<std::string> arguments = smallNetwork(scratch);
  arguments.insert(arguments.end(), {"--steps", "3", "--batch", "12", "--json", json});
  const std::vector<HostsCase> cases{
      // h hosts of m ranks: 2 (h - 1).
      {"hierarchical", 4, 2, 6, 2,
       "1504 bytes per step between 2 hosts, exactly 2(h-1) = 2 times the gradient's 752"},
      {"hierarchical", 6, 3, 10, 4, "3008 bytes per step between 3 hosts, exactly 2(h-1) = 4 times"},
      // 2 (n - m).
      {"direct", 4, 2, 6, 4,
       "3008 bytes per step between 2 hosts, 4 times the gradient's 752 (hierarchical: 2)"},
      // n (n - m).
      {"one_shot", 4, 2, 12, 8,
       "6016 bytes per step between 2 hosts, 8 times the gradient's 752 (hierarchical: 2)"},
      // A rank on each: hosts are a ring of ranks.
      {"ring", 3, 3, 4, 4, "3008 bytes per step between 3 hosts, exactly 2(h-1) = 4 times"},
  };
  for (const HostsCase& it : cases) {
    const CommandResult result =
        trainOn(it.nranks, arguments, {"--hosts", std::to_string(it.hosts)}, {{"TUTTI_PLAN", it.plan}});
    SCOPED_TRACE(it.plan + "\n" + both(result));
    ASSERT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, HasSubstr("of which " + it.words));
    const nlohmann::json document = documentOf(json);
    const std::uint64_t gradient = kParameters * 4;
    EXPECT_EQ(document["configuration"]["hosts"], it.hosts);
    for (std::size_t step = 1; step <= 3; ++step) {
      EXPECT_EQ(document["steps"][step]["payload_bytes"], it.payload * gradient);
      EXPECT_EQ(document["steps"][step]["network_bytes"], it.network * gradient);
    }
    const nlohmann::json& between = document["payload"]["between_hosts"];
    EXPECT_EQ(between["hosts"], it.hosts);
    EXPECT_EQ(between["least_step_bytes"], it.network * gradient);
    EXPECT_EQ(between["most_step_bytes"], it.network * gradient);
    const auto least = 2 * static_cast<std::uint64_t>(it.hosts - 1);
    EXPECT_EQ(between["hierarchical_step_bytes"], least * gradient);
    EXPECT_EQ(between["equals_hierarchical"], it.network == least);
  }
}

TEST(TrainPayload, OnOneHostNothingIsSaidOfTheNetwork) {
  const ScratchDirectory scratch;
  const std::string json = scratch.path() + "/run.json";
  std::vector<std::string> arguments = smallNetwork(scratch);
  arguments.insert(arguments.end(), {"--steps", "2", "--batch", "8", "--json", json});
  const CommandResult result = trainOn(4, arguments);
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("of which")));
  EXPECT_EQ(documentOf(json)["configuration"]["hosts"], 1);
  EXPECT_EQ(documentOf(json)["steps"][1]["network_bytes"], 0);
  EXPECT_TRUE(documentOf(json)["payload"]["between_hosts"].is_null());
}

TEST(TrainPayload, BetweenHostsIsOnThePage) {
  const ScratchDirectory scratch;
  const std::string page = scratch.path() + "/page.html";
  std::vector<std::string> arguments = smallNetwork(scratch);
  arguments.insert(arguments.end(), {"--steps", "2", "--batch", "8", "--html", page});
  const CommandResult result = trainOnHosts(4, 2, arguments);
  EXPECT_EQ(result.exit_code, 0) << both(result);
  EXPECT_THAT(contentOf(page), HasSubstr("data-parallel training on 4 ranks on 2 hosts"));
  EXPECT_THAT(contentOf(page), HasSubstr("504 of them per step between 2 hosts: exactly 2(h − 1) = 2 times"));
}

TEST(ExplainTraffic, TwoHostsOfFourDevices) {
  const HostTraffic traffic = hostTrafficOf({7'000'000'000, *findGradientType("bf16"), 8, 2, {}});
  EXPECT_EQ(traffic.hierarchical_total_bytes, 28'000'000'000U);  // 2 x 14 GB
  EXPECT_EQ(traffic.hierarchical_per_host_bytes, 14e9);
  EXPECT_EQ(traffic.ring_per_host_bytes, 24.5e9);
  const std::vector<std::string> arguments{
      "--explain-traffic", "--params", "7e9",         "--dtype", "bf16", "--ranks", "8",
      "--hosts",           "2",        "--link-gbps", "100"};
  const CommandResult result = trainAlone(arguments);
  EXPECT_THAT(result.out, HasSubstr("each of 2 hosts sends 2(h-1)/h x S = 1 x S = 14 GB")) << both(result);
  EXPECT_THAT(result.out, HasSubstr("all hosts 2(h-1) x S = 28 GB; one ring of all devices: 24.5 GB"));
  // 14 GB are 112 Gbit.
  EXPECT_THAT(result.out, ::testing::ContainsRegex("100 +12\\.5 +1\\.12 s +1\\.96 s"));
  std::vector<std::string> as_json = arguments;
  as_json.insert(as_json.end(), {"--json", "-"});
  const auto document = nlohmann::json::parse(trainAlone(as_json).out, nullptr, false);
  EXPECT_EQ(document["hosts"]["hosts"], 2);
  EXPECT_EQ(document["hosts"]["hierarchical_sent_per_host_bytes"], 14e9);
  EXPECT_EQ(document["hosts"]["hierarchical_sent_by_all_bytes"], 28'000'000'000U);
  EXPECT_EQ(document["hosts"]["ring_sent_per_host_bytes"], 24.5e9);
}

TEST(ExplainTraffic, SevenBillionParametersInBf16OnEightDevices) {
  const Traffic traffic = trafficOf({7'000'000'000, *findGradientType("bf16"), 8, 1, {}});
  EXPECT_EQ(traffic.gradient_bytes, 14'000'000'000U);
  EXPECT_EQ(traffic.ring_per_device_bytes, 24.5e9);  // 1.75 x 14 GB
  EXPECT_EQ(traffic.ring_total_bytes, 196'000'000'000U);
  EXPECT_EQ(traffic.ring_messages, 14U);
  EXPECT_EQ(traffic.exchange_per_device_bytes, 98'000'000'000U);
  // 24.5 GB are 196 Gbit.
  EXPECT_DOUBLE_EQ(secondsOn(100, traffic.ring_per_device_bytes), 1.96);
}

TEST(ExplainTraffic, OneDeviceMovesNothingAndTheLargestDoesNotOverflow) {
  EXPECT_EQ(trafficOf({1000, *findGradientType("fp32"), 1, 1, {}}).ring_total_bytes, 0U);
  const Traffic largest = trafficOf({10'000'000'000'000, *findGradientType("fp64"), 100'000, 1, {}});
  EXPECT_EQ(largest.ring_total_bytes, 199'998U * 80'000'000'000'000U);
}

TEST(ExplainTraffic, BytesForPeople) {
  EXPECT_EQ(humanBytes(0), "0 bytes");
  EXPECT_EQ(humanBytes(999), "999 bytes");
  EXPECT_EQ(humanBytes(1000), "1 kB");
  EXPECT_EQ(humanBytes(176176), "176.2 kB");
  EXPECT_EQ(humanBytes(24.5e9), "24.5 GB");
  EXPECT_EQ(humanBytes(1.6e19), "16 EB");
}

TEST(ExplainTraffic, SaysItInWordsAndAsJson) {
  const CommandResult result = trainAlone(
      {"--explain-traffic", "--params", "7e9", "--dtype", "bf16", "--ranks", "8", "--link-gbps", "100,3600"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("7000000000 x 2 bytes (bf16) = 14 GB per device and step"));
  EXPECT_THAT(result.out, HasSubstr("2(n-1)/n x S = 1.75 x S = 24.5 GB"));
  EXPECT_THAT(result.out, HasSubstr("2(n-1) x S = 196 GB per step"));
  EXPECT_THAT(result.out, ::testing::ContainsRegex("100 +12\\.5 +1\\.96 s"));
  EXPECT_THAT(result.out, ::testing::ContainsRegex("3600 +450 +54\\.4 ms"));

  const CommandResult json = trainAlone({"--explain-traffic", "--params", "7000000000", "--dtype", "bf16",
                                         "--ranks", "8", "--link-gbps", "100", "--json", "-"});
  const auto document = nlohmann::json::parse(json.out, nullptr, false);
  EXPECT_EQ(document["ring"]["sent_per_device_bytes"], 24.5e9);
  EXPECT_EQ(document["links"][0]["gbps"], 100);
  EXPECT_DOUBLE_EQ(document["links"][0]["ring_seconds"], 1.96);
  EXPECT_THAT(json.err, HasSubstr("14 GB")) << "the words go to standard error";
}

TEST(ExplainTraffic, UnderALauncherOneRankSpeaks) {
  const CommandResult result = trainOn(3, {"--explain-traffic", "--params", "10", "--ranks", "2"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("[0] "));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("[1] ")));
}

TEST(ExplainTraffic, BadInputIsRefused) {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.begin(), "--explain-traffic");
    return more;
  };
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases{
      {with({}), "needs --params, such as --params 7e9"},
      {with({"--params", "7e9"}), "needs --ranks"},
      {with({"--params", "7.5", "--ranks", "8"}), "--params 7.5: must be a whole number"},
      {with({"--params", "0", "--ranks", "8"}), "--params 0: must be a whole number"},
      {with({"--params", "nan", "--ranks", "8"}), "--params nan: must be"},
      {with({"--params", "7B", "--ranks", "8"}), "--params 7B: must be"},
      {with({"--params", "1e14", "--ranks", "8"}), "--params 1e14: must be"},
      {with({"--params", "7e9", "--ranks", "0"}), "--ranks 0: must be 1 to 100000"},
      {with({"--params", "7e9", "--ranks", "8", "--hosts", "3"}), "--hosts 3: must divide the 8 ranks"},
      {with({"--params", "7e9", "--ranks", "8", "--hosts", "0"}), "--hosts 0: must be 1 to 100000"},
      {{"--hosts", "2"}, "--hosts: belongs to --explain-traffic"},
      {with({"--params", "7e9", "--ranks", "8", "--dtype", "int4"}),
       "--dtype int4: must be fp64, fp32, bf16, fp16 or fp8"},
      {with({"--params", "7e9", "--ranks", "8", "--link-gbps", "100,,2"}),
       "--link-gbps 100,,2: must be speeds"},
      {with({"--params", "7e9", "--ranks", "8", "--link-gbps", "0"}), "--link-gbps 0: must be speeds"},
      {with({"--params", "7e9", "--ranks", "8", "--steps", "3"}),
       "--steps: has no meaning with --explain-traffic"},
      {with({"--params", "7e9", "--ranks", "8", "--verify"}),
       "--verify: has no meaning with --explain-traffic"},
      {with({"--scaling"}), "--scaling with --explain-traffic"},
      {{"--params", "7e9"}, "--params: belongs to --explain-traffic"},
      {{"--link-gbps", "10"}, "--link-gbps: belongs to --explain-traffic"},
      {{"--ranks", "4"}, "--ranks: belongs to --scaling or --explain-traffic"},
      {{"--dtype", "bf16"}, "--dtype bf16: must be fp32 or fp64 to train"},
  };
  for (const Case& it : cases) {
    const CommandResult result = trainAlone(it.arguments);
    SCOPED_TRACE(it.message + "\n" + both(result));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, ::testing::StartsWith("tutti-train: "));
    EXPECT_THAT(result.err, HasSubstr(it.message));
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace
