// --scaling: the arithmetic on a document written here, and small runs. No figure is judged: speed belongs to
// no test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
#include "tests/programs/train_command.h"
#include "tools/train/child_run.h"
#include "tools/train/scaling.h"

namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tutti::test::both;
using tutti::test::CommandResult;
using tutti::test::documentOf;
using tutti::test::ScratchDirectory;
using tutti::test::trainAlone;
using tutti::test::trainOn;
using namespace tutti::train;  // NOLINT(google-build-using-namespace)

const std::vector<std::string> kSmall{"--scaling", "--steps", "6", "--hidden", "8", "--batch", "4"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// A run with these milliseconds of computing per step; 1 ms of all-reduce, 0.5 of update and of check each.
nlohmann::ordered_json runOf(std::size_t ranks, std::size_t sequences,
                             const std::vector<double>& compute_ms) {
  nlohmann::ordered_json document;
  document["configuration"] = {{"ranks", ranks}, {"batch", {{"sequences", sequences}}}};
  document["steps"].push_back({{"step", 0}});
  for (const double ms : compute_ms) {
    document["steps"].push_back(
        {{"seconds", {{"compute", ms / 1e3}, {"all_reduce", 1e-3}, {"update", 5e-4}, {"check", 5e-4}}}});
  }
  return document;
}

TEST(Scaling, RowsLeaveOutTheFirstStepsAndTakeTheMean) {
  const ScalingRow row = scalingRow(runOf(2, 128, {1000, 1000, 8, 8, 10, 6}));
  EXPECT_EQ(row.ranks, 2U);
  EXPECT_EQ(row.steps, 4U);
  EXPECT_DOUBLE_EQ(row.mean_step_seconds, 0.010);
  EXPECT_DOUBLE_EQ(row.samples_per_second, 12800);
  EXPECT_DOUBLE_EQ(row.all_reduce_share, 0.1);
  // Of the steps of 8, 10, 10 and 12 ms the 10th percentile is the first, the 90th the last.
  EXPECT_DOUBLE_EQ(row.spread, 0.4);
}

TEST(Scaling, AShortRunLeavesOutNothing) { EXPECT_EQ(scalingRow(runOf(1, 4, {1, 2})).steps, 2U); }

TEST(Scaling, EfficiencyIsSpeedUpByRanks) {
  ScalingResult result;
  result.rows.push_back(scalingRow(runOf(1, 64, {6, 6, 6})));      // 8 ms: 8000 per second
  result.rows.push_back(scalingRow(runOf(4, 256, {14, 14, 14})));  // 16 ms: 16000 per second
  EXPECT_DOUBLE_EQ(result.speedUp(result.rows[0]), 1);
  EXPECT_DOUBLE_EQ(result.speedUp(result.rows[1]), 2);
  EXPECT_DOUBLE_EQ(result.efficiency(result.rows[1]), 0.5);
}

TEST(Scaling, RunsOneToNRanks) {
  const ScratchDirectory scratch;
  const std::string json = scratch.path() + "/scaling.json";
  const CommandResult result = trainAlone(with(kSmall, {"--ranks", "3", "--json", json}));
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("weak scaling: 4 sequences of 1 character per rank"));
  const nlohmann::json document = documentOf(json);
  EXPECT_EQ(document["mode"], "scaling");
  EXPECT_EQ(document["kind"], "weak");
  ASSERT_EQ(document["rows"].size(), 3U);
  const auto cores = document["cores"].get<std::size_t>();
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& row = document["rows"][i];
    EXPECT_EQ(row["ranks"], i + 1);
    EXPECT_EQ(row["steps"], 4);
    EXPECT_EQ(row["ranks_share_cores"], i + 1 > cores);
    EXPECT_GT(row["samples_per_second"], 0.0);
  }
  EXPECT_EQ(document["rows"][0]["efficiency"], 1.0);
  EXPECT_EQ(result.out.find("ranks share cores") != std::string::npos, cores < 3);
}

TEST(Scaling, UnderALauncherRankZeroMeasuresUpToItsRanks) {
  const CommandResult result = trainOn(2, kSmall);
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("[0] tutti-train"));
  EXPECT_THAT(result.out, HasSubstr("--scaling: 1 to 2 ranks on"));
  EXPECT_THAT(result.out, Not(HasSubstr("[1] ")));
}

TEST(Scaling, AllTrainingOptionsReachTheRuns) {
  const CommandResult result = trainAlone(
      with(kSmall, {"--ranks", "1", "--optimizer", "adam", "--lr", "0.01", "--dtype", "fp64", "--sequence",
                    "3", "--context", "5", "--embedding", "3", "--layers", "1", "--seed", "9"}));
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("4 sequences of 3 characters per rank"));
}

TEST(Scaling, BadInputIsRefusedBeforeAnyRun) {
  struct Case {
    std::vector<std::string> more;
    std::string message;
  };
  const std::vector<Case> cases{
      {{"--verify"}, "--verify: has no meaning with --scaling"},
      {{"--uneven"}, "--uneven: has no meaning with --scaling"},
      {{"--html", "x"}, "--html: has no meaning with --scaling"},
      {{"--log-every", "5"}, "--log-every: has no meaning with --scaling"},
      {{"--params", "5"}, "--params: has no meaning with --scaling"},
      {{"--ranks", "0"}, "--ranks 0: must be 1 to 64"},
      {{"--ranks", "65"}, "--ranks 65: must be 1 to 64"},
      {{"--ranks", "64", "--batch", "200"}, "64 ranks with 200 sequences each"},
      {{"--data", "/nowhere"}, "--data /nowhere: cannot be opened"},
      {{"--hidden", "4096", "--context", "64", "--embedding", "256"}, "parameters; at most 67108864"},
      {{"--json", "/nowhere/x"}, "--json /nowhere/x: cannot be written"},
  };
  for (const Case& it : cases) {
    std::vector<std::string> arguments{"--scaling"};
    arguments.insert(arguments.end(), it.more.begin(), it.more.end());
    const CommandResult result = trainAlone(arguments);
    SCOPED_TRACE(it.message + "\n" + both(result));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(it.message));
    EXPECT_EQ(result.out, "");
  }
}

TEST(Scaling, ARunThatFailsIsNamed) {
  const ScratchDirectory scratch;
  const std::string program = scratch.path() + "/tutti-train";
  std::filesystem::copy_file(std::string(TUTTI_BIN_DIR) + "/tutti-train", program);
  const auto run = [&] {
    return tutti::test::runCommand({program, "--scaling", "--ranks", "2"}, {}, tutti::test::kTrainLimit);
  };
  const CommandResult alone = run();
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.err,
              HasSubstr("--scaling starts its ranks with " + scratch.path() + "/tutti-run: No such file"));

  scratch.addProgram("tutti-run", "#!/bin/sh\nexit 3\n");
  EXPECT_THAT(run().err, HasSubstr("--scaling: the run on 1 rank ended with exit status 3"));

  scratch.addProgram("tutti-run", "#!/bin/sh\nkill -9 $$\n");
  EXPECT_THAT(run().err, HasSubstr("--scaling: the run on 1 rank ended with signal 9"));

  // Ends well, but wrote nothing.
  scratch.addProgram("tutti-run", "#!/bin/sh\nexit 0\n");
  const CommandResult nothing = run();
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.err, HasSubstr("--scaling: the run on 1 rank wrote no result"));
}

TEST(ScratchFile, HoldsWhatOthersWriteAndLeavesNothing) {
  std::string path;
  {
    const ScratchFile file;
    path = file.path();
    EXPECT_EQ(file.content(), "");
    std::ofstream(path) << std::string(100'000, 'x');
    EXPECT_EQ(file.content(), std::string(100'000, 'x'));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
