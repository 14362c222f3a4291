// Ranks with unequal numbers of sequences, longer sequences, and the comparison with whole batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
#include "tests/programs/train_command.h"
#include "tests/programs/train_on_host.h"
#include "tools/train/data.h"
#include "tools/train/division.h"
#include "tools/train/model.h"

namespace {

using ::testing::HasSubstr;
using tutti::test::both;
using tutti::test::CommandResult;
using tutti::test::documentOf;
using tutti::test::ScratchDirectory;
using tutti::test::trainAlone;
using tutti::test::trainOn;
using namespace tutti::train;  // NOLINT(google-build-using-namespace)

TEST(Division, UnevenCountsAlternate) {
  EXPECT_EQ(unevenCounts(2), (std::vector<std::size_t>{4, 400}));
  EXPECT_EQ(unevenCounts(5), (std::vector<std::size_t>{4, 400, 4, 400, 4}));
  EXPECT_EQ(totalOf(unevenCounts(5)), 812U);
}

TEST(Division, UnevenSlicesPartitionTheBatchInOrder) {
  const std::vector<std::size_t> batch{10, 11, 12, 13, 14, 15};
  const std::vector<std::size_t> counts{1, 3, 2};
  const auto slice = [&](std::size_t rank) {
    const auto part = sliceOf(batch, counts, rank);
    return std::vector<std::size_t>(part.begin(), part.end());
  };
  EXPECT_EQ(slice(0), (std::vector<std::size_t>{10}));
  EXPECT_EQ(slice(1), (std::vector<std::size_t>{11, 12, 13}));
  EXPECT_EQ(slice(2), (std::vector<std::size_t>{14, 15}));
}

TEST(Division, WeightedMeanIsTheMeanOverTheBatch) {
  // One sequence with 8, three with a mean of 4: (8 + 12) / 4.
  EXPECT_DOUBLE_EQ(weightedMean(std::array{8.0, 4.0}, std::array<std::size_t, 2>{1, 3}), 5.0);
}

TEST(Sequences, EveryCharacterOfASequenceIsAnExample) {
  const std::string text = "abcdefgh";
  const Corpus corpus = makeCorpus("x", std::vector<std::uint8_t>(text.begin(), text.end()));
  const Examples examples = gatherExamples(corpus, {2, 3}, std::array<std::size_t, 2>{3, 0});
  EXPECT_EQ(examples.count, 6U);
  EXPECT_EQ(examples.contexts, (std::vector<std::uint8_t>{3, 4, 4, 5, 5, 6, 0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(examples.targets, (std::vector<std::uint8_t>{5, 6, 7, 2, 3, 4}));
  // 2 + 3 of 8 characters: starts 0 to 3.
  for (std::size_t step = 1; step <= 20; ++step) {
    for (const std::size_t position : batchPositions(corpus, {2, 3}, 16, 1, step)) EXPECT_LE(position, 3U);
  }
}

double distance(const std::vector<double>& left, const std::vector<double>& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += (left[i] - right[i]) * (left[i] - right[i]);
  return std::sqrt(sum);
}

TEST(Uneven, WeightedGradientsAreTheGradientOfTheBatchAndPlainOnesAreNot) {
  const std::string text = "the quick brown fox jumps over the lazy dog, and the dog does not mind at all.";
  const Corpus corpus = makeCorpus("x", std::vector<std::uint8_t>(text.begin(), text.end()));
  const Window window{3, 2};
  const ModelShape shape{corpus.vocabulary, 3, 4, 5, 2};
  const OnHost<double> host;
  Model<double> model(shape, *host.kernels);
  std::vector<double> parameters(parameterCount(shape));
  model.initialise(5, parameters);
  const std::vector<std::size_t> counts{1, 9, 2};
  const auto batch = batchPositions(corpus, window, totalOf(counts), 7, 1);
  const auto gradient_of = [&](std::span<const std::size_t> positions) {
    std::vector<double> gradient(parameters.size());
    model.lossAndGradient(parameters, gatherExamples(corpus, window, positions), gradient);
    return gradient;
  };
  const std::vector<double> whole = gradient_of(batch);
  std::vector<double> weighted(whole.size());
  std::vector<double> plain(whole.size());
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const std::vector<double> own = gradient_of(sliceOf(batch, counts, rank));
    for (std::size_t i = 0; i < own.size(); ++i) {
      weighted[i] += own[i] * static_cast<double>(counts[rank]) / 12.0;
      plain[i] += own[i] / 3.0;
    }
  }
  const double norm = distance(whole, std::vector<double>(whole.size()));
  EXPECT_LE(distance(weighted, whole), 1e-13 * norm);
  EXPECT_GE(distance(plain, whole), 0.05 * norm);
}

TEST(Uneven, DistributedRunEqualsOneProcess) {
  const ScratchDirectory scratch;
  for (const int nranks : {2, 3}) {
    for (const std::string optimizer : {"sgd", "adam"}) {
      const std::string json = scratch.path() + "/run.json";
      const CommandResult result =
          trainOn(nranks, {"--uneven", "--verify", "--steps", "12", "--hidden", "24", "--optimizer",
                           optimizer, "--dtype", "fp64", "--json", json});
      SCOPED_TRACE(testing::Message() << nranks << " ranks, " << optimizer << "\n" << both(result));
      EXPECT_EQ(result.exit_code, 0);
      const nlohmann::json document = documentOf(json);
      EXPECT_EQ(document["configuration"]["batch"]["sequences_per_rank"][0], 4);
      EXPECT_EQ(document["configuration"]["batch"]["sequences_per_rank"][1], 400);
      ASSERT_EQ(document["verify"]["tensors"].size(), 7U);
      for (const auto& tensor : document["verify"]["tensors"]) {
        EXPECT_LE(tensor["relative_difference"], 1e-8) << tensor["name"];
      }
      EXPECT_EQ(document["replicas"]["identical"], true);
    }
  }
}

TEST(Uneven, WithoutWeightsReplicasAgreeOnAWrongModel) {
  const CommandResult result = trainOn(
      2, {"--uneven", "--no-weights", "--verify", "--steps", "12", "--hidden", "24", "--dtype", "fp64"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("verify: distributed run equals one process on the whole batch: no"));
  EXPECT_THAT(result.out, HasSubstr("replicas identical after every step: yes (12/12)"));
  EXPECT_THAT(result.err, HasSubstr("--verify failed"));
}

TEST(Verify, AdamInFp64IsWithinTheStatedLimitOnLongerSequences) {
  const ScratchDirectory scratch;
  const std::string json = scratch.path() + "/run.json";
  const CommandResult result =
      trainOn(4, {"--optimizer", "adam", "--dtype", "fp64", "--verify", "--steps", "40", "--hidden", "24",
                  "--batch", "16", "--sequence", "6", "--json", json});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("16 sequences of 6 characters, 4 per rank"));
  const nlohmann::json verify = documentOf(json)["verify"];
  ASSERT_EQ(verify["tensors"].size(), 7U);
  for (const auto& tensor : verify["tensors"])
    EXPECT_LE(tensor["relative_difference"], 1e-8) << tensor["name"];
  EXPECT_EQ(verify["passed"], true);
}

TEST(Uneven, BadCombinationsAreRefused) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases{
      {{"--uneven"}, "--uneven: one rank has no other to have more than"},
      {{"--uneven", "--batch", "64"}, "--batch with --uneven"},
      {{"--no-weights"}, "--no-weights: needs --uneven"},
      {{"--uneven", "--no-weights", "--no-average"}, "--no-weights with --no-average"},
      {{"--sequence", "0"}, "--sequence 0: must be 1 to 1024"},
      {{"--sequence", "1000"},
       "64 sequences of 1000 characters are 64000 predictions per step; at most 16384"},
  };
  for (const Case& it : cases) {
    const CommandResult result = trainAlone(it.arguments);
    SCOPED_TRACE(it.message + "\n" + both(result));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(it.message));
    EXPECT_EQ(result.out, "");
  }
  const CommandResult much = trainOn(2, {"--uneven", "--sequence", "41"});
  EXPECT_EQ(much.exit_code, 2);
  EXPECT_THAT(much.err, HasSubstr("404 sequences of 41 characters are 16564 predictions per step"));
}

}  // namespace
