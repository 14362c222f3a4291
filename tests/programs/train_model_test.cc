// tutti-train's network, optimizers, data and hashes against formulas written out here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/programs/train_on_host.h"
#include "tools/train/data.h"
#include "tools/train/division.h"
#include "tools/train/model.h"
#include "tools/train/optimizer.h"
#include "tools/train/replica.h"
#include "tools/train/replica_hash.h"
#include "tools/train/verify.h"

namespace {

using namespace tutti::train;  // NOLINT(google-build-using-namespace)

std::vector<std::uint8_t> bytesOf(const std::string& text) { return {text.begin(), text.end()}; }

const std::string kText = "the quick brown fox jumps over the lazy dog, and the dog does not mind at all.";

/// A network small enough for differences by every parameter, with biases that are not zero.
struct SmallNetwork {
  explicit SmallNetwork(std::size_t layers, std::size_t batch = 12)
      : corpus(makeCorpus("text", bytesOf(kText))),
        shape{corpus.vocabulary, 3, 4, 5, layers},
        model(shape, *host.kernels),
        parameters(parameterCount(shape)),
        positions(batchPositions(corpus, {shape.context}, batch, 7, 1)) {
    Random random(11);
    for (double& value : parameters) value = random.symmetric(0.8);
  }

  std::vector<double> gradientOf(std::span<const std::size_t> some) {
    std::vector<double> gradient(parameters.size(), std::numeric_limits<double>::quiet_NaN());
    model.lossAndGradient(parameters, gatherExamples(corpus, {shape.context}, some), gradient);
    return gradient;
  }

  double loss(const std::vector<double>& at) {
    std::vector<double> ignored(at.size());
    return model.lossAndGradient(at, gatherExamples(corpus, {shape.context}, positions), ignored);
  }

  Corpus corpus;
  ModelShape shape;
  OnHost<double> host;
  Model<double> model;
  std::vector<double> parameters;
  std::vector<std::size_t> positions;
};

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double distance(std::vector<double> left, const std::vector<double>& right) {
  for (std::size_t i = 0; i < left.size(); ++i) left[i] -= right[i];
  return norm(left);
}

// --- Network ---------------------------------------------------------------------------------------------

/// The loss of one example from the formulas in model.h, with one layer, in long double and plain loops.
long double lossByHand(const SmallNetwork& net, std::size_t position) {
  const ModelShape& s = net.shape;
  const auto tensors = tensorLayout(s);
  const auto at = [&](std::size_t tensor, std::size_t row, std::size_t column) {
    return static_cast<long double>(
        net.parameters[tensors[tensor].offset + row * tensors[tensor].columns + column]);
  };
  std::vector<long double> logits(s.vocabulary);
  for (std::size_t v = 0; v < s.vocabulary; ++v) logits[v] = at(4, 0, v);
  for (std::size_t h = 0; h < s.hidden; ++h) {
    long double sum = at(2, 0, h);
    for (std::size_t k = 0; k < s.context; ++k) {
      for (std::size_t e = 0; e < s.embedding; ++e) {
        sum += at(0, net.corpus.symbols[position + k], e) * at(1, k * s.embedding + e, h);
      }
    }
    for (std::size_t v = 0; v < s.vocabulary; ++v) logits[v] += std::tanh(sum) * at(3, h, v);
  }
  long double total = 0;
  for (const long double logit : logits) total += std::exp(logit);
  return std::log(total) - logits[net.corpus.symbols[position + s.context]];
}

TEST(Model, LossIsTheFormula) {
  SmallNetwork net(1);
  long double expected = 0;
  for (const std::size_t position : net.positions) expected += lossByHand(net, position);
  expected /= static_cast<long double>(net.positions.size());
  EXPECT_NEAR(net.loss(net.parameters), static_cast<double>(expected), 1e-14);
}

TEST(Model, GradientIsTheDerivativeOfTheLoss) {
  for (const std::size_t layers : {std::size_t{1}, std::size_t{2}}) {
    SmallNetwork net(layers);
    const std::vector<double> gradient = net.gradientOf(net.positions);
    // Central differences: the error is of order h^2 from the third derivative and 1e-16 / h from rounding.
    const double h = 1e-5;
    for (const Tensor& tensor : net.model.tensors()) {
      double largest = 0;
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.count(); ++i) {
        std::vector<double> moved = net.parameters;
        moved[i] = net.parameters[i] + h;
        const double above = net.loss(moved);
        moved[i] = net.parameters[i] - h;
        const double below = net.loss(moved);
        EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-9) << tensor.name << " element " << i;
        largest = std::max(largest, std::abs(gradient[i]));
      }
      EXPECT_GT(largest, 1e-4) << tensor.name << ": a gradient of zero would pass the comparison above";
    }
  }
}

TEST(Model, TensorsCoverTheFlatVectorOnce) {
  for (const std::size_t layers : {std::size_t{1}, std::size_t{2}}) {
    const ModelShape shape{7, 3, 4, 5, layers};
    std::size_t next = 0;
    for (const Tensor& tensor : tensorLayout(shape)) {
      EXPECT_EQ(tensor.offset, next) << tensor.name;
      next += tensor.rows * tensor.columns;
    }
    // embedding; dense1; (dense2); output
    const std::size_t expected = 7 * 4 + (3 * 4 * 5 + 5) + (layers - 1) * (5 * 5 + 5) + (5 * 7 + 7);
    EXPECT_EQ(next, expected);
    EXPECT_EQ(parameterCount(shape), expected);
  }
}

TEST(Model, MeanOfSliceGradientsIsTheGradientOfTheBatch) {
  for (const std::size_t nranks : {1, 2, 3, 4, 6, 12}) {
    SmallNetwork net(2);
    std::vector<double> mean(net.parameters.size());
    for (std::size_t rank = 0; rank < nranks; ++rank) {
      const std::vector<double> own = net.gradientOf(sliceOf(net.positions, evenCounts(12, nranks), rank));
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += own[i] / static_cast<double>(nranks);
    }
    const std::vector<double> whole = net.gradientOf(net.positions);
    EXPECT_LE(distance(mean, whole), 1e-12 * norm(whole)) << nranks << " ranks";
  }
}

TEST(Model, SlicesOfABatchHaveDifferentGradients) {
  SmallNetwork net(1);
  EXPECT_NE(net.gradientOf(sliceOf(net.positions, evenCounts(12, 2), 0)),
            net.gradientOf(sliceOf(net.positions, evenCounts(12, 2), 1)));
}

// --- Optimizers ------------------------------------------------------------------------------------------

TEST(Optimizer, SgdFollowsTheFormula) {
  const OptimizerSettings settings{OptimizerKind::kSgd, 0.05, 0.8};
  const OnHost<double> host;
  const auto optimizer = makeOptimizer<double>(settings, *host.kernels);
  std::vector<double> state(3 * optimizer->stateNames().size());
  std::vector<double> parameters{1.0, -2.0, 0.5};
  std::vector<double> expected = parameters;
  std::vector<double> velocity(3);
  for (std::size_t step = 1; step <= 4; ++step) {
    const std::vector<double> gradient{0.3 * static_cast<double>(step), -1.0, 1e-9};
    for (std::size_t i = 0; i < 3; ++i) {
      velocity[i] = 0.8 * velocity[i] + gradient[i];
      expected[i] = expected[i] - 0.05 * velocity[i];
    }
    optimizer->update(step, gradient, parameters, state);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(parameters[i], expected[i]) << "step " << step;
  }
}

TEST(Optimizer, AdamFollowsTheFormula) {
  const OptimizerSettings settings{OptimizerKind::kAdam, 0.05, 0.0};
  const OnHost<double> host;
  const auto optimizer = makeOptimizer<double>(settings, *host.kernels);
  std::vector<double> state(3 * optimizer->stateNames().size());
  std::vector<double> parameters{1.0, -2.0, 0.5};
  std::vector<double> expected = parameters;
  std::vector<double> m(3);
  std::vector<double> v(3);
  double power1 = 1;
  double power2 = 1;
  for (std::size_t step = 1; step <= 4; ++step) {
    const std::vector<double> gradient{0.3 * static_cast<double>(step), -1.0, 1e-9};
    power1 *= 0.9;
    power2 *= 0.999;
    for (std::size_t i = 0; i < 3; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * gradient[i];
      v[i] = 0.999 * v[i] + 0.001 * gradient[i] * gradient[i];
      const double mean = m[i] / (1 - power1);
      const double square = v[i] / (1 - power2);
      expected[i] -= 0.05 * mean / (std::sqrt(square) + 1e-8);
    }
    optimizer->update(step, gradient, parameters, state);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(parameters[i], expected[i], 1e-14) << "step " << step;
  }
}

// --- Data ------------------------------------------------------------------------------------------------

TEST(Data, SymbolsNumberTheBytesInOrder) {
  const Corpus corpus = makeCorpus("x", bytesOf(std::string("b\xff\0ab", 5)));
  EXPECT_EQ(corpus.vocabulary, 4U);
  EXPECT_EQ(corpus.symbols, (std::vector<std::uint8_t>{2, 3, 0, 1, 2}));
}

TEST(Data, AllByteValuesAreAVocabulary) {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(255 - i);
  const Corpus corpus = makeCorpus("x", bytes);
  EXPECT_EQ(corpus.vocabulary, 256U);
  EXPECT_EQ(corpus.symbols, bytes);
}

TEST(Data, SlicesPartitionTheBatchInOrder) {
  const Corpus corpus = makeCorpus("x", bytesOf(kText));
  const auto batch = batchPositions(corpus, {3}, 48, 5, 9);
  for (const std::size_t nranks : {1, 2, 3, 4, 8, 16, 48}) {
    std::vector<std::size_t> joined;
    for (std::size_t rank = 0; rank < nranks; ++rank) {
      const auto slice = sliceOf(batch, evenCounts(48, nranks), rank);
      EXPECT_EQ(slice.size(), 48 / nranks);
      joined.insert(joined.end(), slice.begin(), slice.end());
    }
    EXPECT_EQ(joined, batch) << nranks << " ranks";
  }
}

TEST(Data, BatchesDependOnSeedAndStepAndReachEveryPosition) {
  const Corpus corpus = makeCorpus("x", bytesOf("abcdefgh"));
  EXPECT_EQ(batchPositions(corpus, {3}, 16, 1, 1), batchPositions(corpus, {3}, 16, 1, 1));
  EXPECT_NE(batchPositions(corpus, {3}, 16, 1, 1), batchPositions(corpus, {3}, 16, 1, 2));
  EXPECT_NE(batchPositions(corpus, {3}, 16, 1, 1), batchPositions(corpus, {3}, 16, 2, 1));
  std::set<std::size_t> seen;
  for (std::size_t step = 1; step <= 20; ++step) {
    for (const std::size_t position : batchPositions(corpus, {3}, 16, 1, step)) seen.insert(position);
  }
  // 8 symbols, 4 per example: the first one starts at 0, the last at 4.
  EXPECT_EQ(seen, (std::set<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(Data, AnExampleIsTheContextAndWhatFollows) {
  const Corpus corpus = makeCorpus("x", bytesOf("abcdefgh"));
  const Examples examples = gatherExamples(corpus, {3}, std::array<std::size_t, 2>{4, 0});
  EXPECT_EQ(examples.count, 2U);
  EXPECT_EQ(examples.contexts, (std::vector<std::uint8_t>{4, 5, 6, 0, 1, 2}));
  EXPECT_EQ(examples.targets, (std::vector<std::uint8_t>{7, 3}));
}

TEST(Data, RandomIsSplitMix64) {
  // First outputs for seed 1234567, as published with the reference implementation and used by other tests of
  // SplitMix64.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

// --- Hashes and comparison -------------------------------------------------------------------------------

TEST(ReplicaHash, OneFlippedBitChangesThatTensorsHash) {
  const OnHost<float> host;
  Replica<float> replica({7, 3, 4, 5, 2}, {}, 1, *host.kernels);
  const auto before = hashEach(replica.state());
  const Tensor& tensor = replica.tensors()[3];
  ASSERT_EQ(tensor.name, "dense2.weight");
  float& value = tensor.in(replica.parameters())[9];
  value = std::nextafter(value, 10.0F);
  const auto after = hashEach(replica.state());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i] == after[i], i != 3) << i;
  EXPECT_NE(combinedHash(before), combinedHash(after));
}

TEST(ReplicaHash, StateHoldsParametersAndOptimizerState) {
  const OnHost<double> host;
  const auto names = [&](OptimizerKind kind) {
    std::vector<std::string> result;
    for (const NamedBytes& tensor :
         Replica<double>({7, 3, 4, 5, 1}, {kind, 0.1, 0.9}, 1, *host.kernels).state()) {
      result.push_back(tensor.name);
    }
    return result;
  };
  EXPECT_EQ(names(OptimizerKind::kSgd).size(), 10U);
  EXPECT_EQ(names(OptimizerKind::kAdam).size(), 15U);
  EXPECT_EQ(names(OptimizerKind::kSgd)[1], "dense1.weight");
  EXPECT_EQ(names(OptimizerKind::kSgd)[6], "dense1.weight.momentum");
  EXPECT_EQ(names(OptimizerKind::kAdam)[11], "dense1.weight.adam_v");
}

TEST(ReplicaHash, TheMinorityIsTheOddOne) {
  using Values = std::vector<std::uint64_t>;
  const auto odd = [](const Values& values) {
    const auto found = findOddRank(values);
    return found ? Values{found->rank, found->reference, found->differing} : Values{};
  };
  // {rank, the rank it is held against, ranks that differ}
  const Values none;
  EXPECT_EQ(odd({5}), none);
  EXPECT_EQ(odd({5, 5, 5}), none);
  EXPECT_EQ(odd({5, 5, 6, 5}), (Values{2, 0, 1}));
  EXPECT_EQ(odd({6, 5, 5, 5}), (Values{0, 1, 1}));
  EXPECT_EQ(odd({5, 6}), (Values{1, 0, 1}));
  EXPECT_EQ(odd({4, 5, 6, 7}), (Values{1, 0, 3}));
}

TEST(Verify, DifferenceIsRelativePerTensor) {
  const std::vector<Tensor> tensors{{"a", 0, 1, 2}, {"b", 2, 1, 1}, {"c", 3, 1, 1}};
  const std::vector<double> left{3.0, 5.0, 0.0, 1.0};
  const std::vector<double> right{3.0, 4.0, 0.0, 0.0};
  const auto found = compareTensors<double>(tensors, left, right);
  EXPECT_DOUBLE_EQ(found[0].relative, 0.2);  // |(0, 1)| / |(3, 4)|
  EXPECT_EQ(found[1].relative, 0.0);
  EXPECT_TRUE(std::isinf(found[2].relative));
  EXPECT_TRUE(std::isnan(largestDifference({{"a", 1.0}, {"b", std::nan("")}, {"c", 2.0}})));
  EXPECT_EQ(largestDifference({{"a", 1.0}, {"b", 3.0}, {"c", 2.0}}), 3.0);
}

TEST(Verify, LossTrendComparesTheEnds) {
  const std::vector<double> falling{5, 4, 3, 2, 1};
  EXPECT_EQ(lossTrend(falling).window, 2U);
  EXPECT_EQ(lossTrend(falling).first, 4.5);
  EXPECT_EQ(lossTrend(falling).last, 1.5);
  EXPECT_TRUE(lossTrend(falling).fell());
  EXPECT_FALSE(lossTrend(std::vector<double>(40, 2.0)).fell());
}

}  // namespace
