// tutti-train as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
#include "tests/programs/train_command.h"

namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using tutti::test::both;
using tutti::test::CommandResult;
using tutti::test::ScratchDirectory;
using tutti::test::trainAlone;
using tutti::test::trainOn;
using tutti::test::trainOnHosts;

std::string lastLine(const std::string& text) {
  const std::string body = text.substr(0, text.find_last_not_of('\n') + 1);
  return body.substr(body.rfind('\n') + 1);
}

TEST(TuttiTrain, FourRanksEqualOneProcess) {
  for (const std::string precision : {"fp32", "fp64"}) {
    for (const std::string optimizer : {"sgd", "adam"}) {
      const CommandResult result =
          trainOn(4, {"--steps", "30", "--verify", "--precision", precision, "--optimizer", optimizer});
      SCOPED_TRACE(testing::Message() << precision << " " << optimizer << "\n" << both(result));
      EXPECT_EQ(result.exit_code, 0);
      EXPECT_THAT(result.out, HasSubstr("gradients differed before averaging: 4 distinct of 4"));
      EXPECT_THAT(result.out,
                  HasSubstr("verify: distributed run equals one process on the whole batch: yes"));
      EXPECT_THAT(result.out, HasSubstr("verify: loss fell: yes"));
      EXPECT_THAT(lastLine(result.out), EndsWith("replicas identical after every step: yes (30/30)"));
    }
  }
}

TEST(TuttiTrain, AnyNumberOfRanksThatDividesTheBatch) {
  for (const int nranks : {2, 3, 8, 16}) {
    const CommandResult result =
        trainOn(nranks, {"--steps", "10", "--batch", "48", "--hidden", "16", "--verify", "--layers", "1"});
    SCOPED_TRACE(both(result));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(lastLine(result.out), EndsWith("replicas identical after every step: yes (10/10)"));
  }
}

TEST(TuttiTrain, RanksOnSeveralHostsEqualOneProcess) {
  for (const auto& [nranks, hosts] : {std::pair{2, 2}, std::pair{4, 2}, std::pair{6, 3}, std::pair{5, 2}}) {
    const CommandResult result = trainOnHosts(nranks, hosts, {"--steps", "20", "--batch", "60", "--verify"});
    SCOPED_TRACE(both(result));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out,
                HasSubstr(std::to_string(nranks) + " ranks on " + std::to_string(hosts) + " hosts"));
    EXPECT_THAT(result.out, HasSubstr("verify: distributed run equals one process on the whole batch: yes"));
    EXPECT_THAT(lastLine(result.out), EndsWith("replicas identical after every step: yes (20/20)"));
  }
}

TEST(TuttiTrain, AFlippedBitOnAnotherHostIsNoticedAndNamed) {
  const CommandResult result = trainOnHosts(4, 2, {"--steps", "20", "--inject-fault", "3:17"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("after step 17: rank 3 differs from rank 0 in tensor \"dense1.weight\""));
}

TEST(TuttiTrain, RunsAloneWithoutALauncher) {
  const CommandResult result = trainAlone({"--steps", "20", "--verify"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("1 rank\n"));
  EXPECT_EQ(lastLine(result.out), "replicas identical after every step: yes (20/20)");
}

TEST(TuttiTrain, EqualSeedsGiveEqualBits) {
  const auto final_state = [](const std::string& seed) {
    const std::string out = trainAlone({"--steps", "5", "--seed", seed}).out;
    const std::size_t at = out.rfind("replicas equal (");
    return at == std::string::npos ? out : out.substr(at, 32);
  };
  EXPECT_EQ(final_state("3"), final_state("3"));
  EXPECT_NE(final_state("3"), final_state("4"));
}

TEST(TuttiTrain, WithoutAveragingReplicasDiverge) {
  const CommandResult result = trainOn(4, {"--steps", "5", "--no-average"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              HasSubstr("replicas diverged at step 1: rank 1 differs from rank 0 in tensor \"embedding\""));
  EXPECT_THAT(lastLine(result.out),
              EndsWith("replicas identical after every step: no (first difference after step 1)"));
}

TEST(TuttiTrain, WithoutAveragingEqualSlicesAreAnError) {
  // One symbol, so every slice is the same one: nothing diverges, and the program says that it did not.
  const ScratchDirectory scratch;
  const CommandResult result =
      trainOn(2, {"--steps", "3", "--no-average", "--data", scratch.write("a", std::string(40, 'a'))});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("replicas did not diverge"));
}

TEST(TuttiTrain, AFlippedBitIsNoticedAndNamed) {
  struct Case {
    std::string fault;
    std::string message;
  };
  for (const Case& it :
       {Case{"2:17", "after step 17: rank 2 differs from rank 0 in tensor \"dense1.weight\""},
        Case{"0:1", "after step 1: rank 0 differs from rank 1 in tensor \"dense1.weight\""},
        Case{"3:30", "after step 30: rank 3 differs from rank 0 in tensor \"dense1.weight\""}}) {
    for (const std::string precision : {"fp32", "fp64"}) {
      const CommandResult result =
          trainOn(4, {"--steps", "30", "--precision", precision, "--inject-fault", it.fault});
      SCOPED_TRACE(it.fault + "\n" + both(result));
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_THAT(result.err, HasSubstr("replicas differ " + it.message));
      EXPECT_THAT(result.out, Not(HasSubstr("replicas identical")));
    }
  }
}

TEST(TuttiTrain, VerifyFailsWhenTheLossDoesNotFall) {
  const CommandResult result = trainOn(2, {"--lr", "10", "--steps", "40", "--hidden", "16", "--verify"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("verify: loss fell: no"));
  EXPECT_THAT(result.err, HasSubstr("--verify failed"));
}

TEST(TuttiTrain, BadInputIsRefused) {
  const ScratchDirectory scratch;
  const std::string empty = scratch.write("empty", "");
  const std::string brief = scratch.write("short", "12345678");
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases{
      {{"--steps", "0"}, "--steps 0: must be 1 to 1000000"},
      {{"--steps", "-3"}, "--steps -3: must be 1 to 1000000"},
      {{"--steps", "many"}, "--steps"},
      {{"--steps", "1000000000000"}, "must be 1 to 1000000"},
      {{"--steps", "1", "--verify"}, "--verify: needs --steps 2 or more"},
      {{"--batch", "0"}, "--batch 0: must be 1 to 8192"},
      {{"--context", "65"}, "--context 65: must be 1 to 64"},
      {{"--embedding", "0"}, "--embedding 0: must be 1 to 256"},
      {{"--hidden", "5000"}, "--hidden 5000: must be 1 to 4096"},
      {{"--context", "64", "--embedding", "256", "--hidden", "4096"}, "parameters; at most 67108864"},
      {{"--layers", "3"}, "--layers 3: must be 1 to 2"},
      {{"--lr", "0"}, "--lr 0: must be more than 0"},
      {{"--lr", "-0.1"}, "--lr -0.1: must be more than 0"},
      {{"--lr", "nan"}, "--lr nan: must be more than 0"},
      {{"--lr", "1e30"}, "--lr 1e+30: must be more than 0 and at most 10"},
      {{"--momentum", "1"}, "--momentum 1: must be at least 0 and less than 1"},
      {{"--momentum", "nan"}, "--momentum nan"},
      {{"--optimizer", "adam", "--momentum", "0.5"}, "--momentum: belongs to --optimizer sgd"},
      {{"--optimizer", "lion"}, "--optimizer lion: must be sgd or adam"},
      {{"--precision", "fp16"}, "--dtype fp16: must be fp32 or fp64"},
      {{"--seed", "-1"}, "--seed -1: must be 0 to 18446744073709551615"},
      {{"--seed", "18446744073709551616"}, "--seed 18446744073709551616: must be"},
      {{"--log-every", "0"}, "--log-every 0: must be"},
      {{"--data", scratch.path()}, "is a directory"},
      {{"--data", scratch.path() + "/none"}, "cannot be opened: No such file or directory"},
      {{"--data", empty}, "is empty"},
      {{"--data", brief}, "has 8 bytes, but one sequence needs 9"},
      {{"--no-average"}, "--no-average: one replica cannot diverge"},
      {{"--no-average", "--verify"}, "--verify with --no-average"},
      {{"--inject-fault", "0:1"}, "--inject-fault: one replica has none to differ from"},
      {{"--inject-fault", "1"}, "--inject-fault 1: must be RANK:STEP"},
      {{"--inject-fault", "1:2x"}, "--inject-fault 1:2x: must be RANK:STEP"},
      {{"--inject-fault", "1:101"}, "--inject-fault 1:101: the step must be 1 to 100"},
      {{"--inject-fault", "1:0"}, "the step must be 1 to 100"},
      {{"--wat"}, "--wat"},
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

TEST(TuttiTrain, TheShortestTextIsEnough) {
  const ScratchDirectory scratch;
  const CommandResult result = trainAlone({"--steps", "3", "--data", scratch.write("nine", "123456789")});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("9 bytes, 9 distinct"));
}

TEST(TuttiTrain, ABatchThatRanksCannotShareIsRefused) {
  const CommandResult result = trainOn(3, {"--batch", "64"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--batch 64 is not a multiple of the 3 ranks"));
}

TEST(TuttiTrain, AFaultOnARankThatIsNotThereIsRefused) {
  const CommandResult result = trainOn(2, {"--inject-fault", "2:1"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no rank 2; ranks are 0 to 1"));
}

/// Runs three ranks, each with the command line that the shell makes of `arguments`.
CommandResult trainWithRanksOwn(const std::string& arguments) {
  const std::string command =
      std::string("exec ") + TUTTI_BIN_DIR + "/tutti-train --steps 4 --batch 6 " + arguments;
  std::vector<std::string> all = tutti::test::withLauncher(3);
  all.insert(all.end(), {"sh", "-c", command});
  return tutti::test::runCommand(all, {}, tutti::test::kTrainLimit);
}

TEST(TuttiTrain, RanksWithDifferentDataAreRefused) {
  const ScratchDirectory scratch;
  scratch.write("0", "A text that most ranks have.");
  scratch.write("1", "A text that the second has.!");
  scratch.write("2", "A text that most ranks have.");
  const CommandResult result = trainWithRanksOwn("--data " + scratch.path() + "/$TUTTI_RANK");
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("data hash: rank 1 has "));
  EXPECT_THAT(result.err, HasSubstr(", rank 0 has "));
  EXPECT_THAT(result.err, Not(HasSubstr("data size")));
}

TEST(TuttiTrain, RanksWithDifferentOptionsAreRefused) {
  const CommandResult result = trainWithRanksOwn("--seed $TUTTI_RANK --lr 0.$((TUTTI_RANK + 1))");
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("--lr: rank 1 has 0.2, rank 0 has 0.1; --seed: rank 1 has 1, rank 0 has 0"));
}

TEST(TuttiTrain, HelpAndVersion) {
  const CommandResult help = trainAlone({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--inject-fault"));
  const CommandResult version = trainAlone({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::StartsWith("tutti-train 0."));
}

}  // namespace
