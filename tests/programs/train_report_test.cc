// --json and --html of tutti-train: what is in them, that the page needs nothing else, and that no report
// harms a file by failing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
#include "tests/programs/markup_check.h"
#include "tests/programs/train_command.h"
#include "tools/train/html_report.h"
#include "tools/train/output_file.h"
#include "tools/train/svg_chart.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tutti::test::both;
using tutti::test::CommandResult;
using tutti::test::contentOf;
using tutti::test::documentOf;
using tutti::test::markupError;
using tutti::test::ScratchDirectory;
using tutti::test::trainAlone;
using tutti::test::trainOn;
using Json = nlohmann::json;

// Enough work per step for the loss to fall at once.
const std::vector<std::string> kSmall{"--steps", "6", "--hidden", "16", "--batch", "96", "--lr", "0.1"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// What the page holds as JSON.
Json embeddedIn(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const auto from = page.find(open);
  const auto to = page.find("</script>", from);
  if (from == std::string::npos || to == std::string::npos) return {};
  return Json::parse(page.substr(from + open.size(), to - from - open.size()), nullptr, false);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t result = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++result;
  return result;
}

TEST(TrainJson, HoldsEveryStepOfEveryRank) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/run.json";
  const CommandResult result =
      trainOn(3, with(kSmall, {"--uneven", "--json", path, "--verify", "--seed", "7"}));
  EXPECT_EQ(result.exit_code, 2) << "--batch with --uneven";
  EXPECT_FALSE(std::filesystem::exists(path));

  const CommandResult run = trainOn(3, with(kSmall, {"--json", path, "--verify", "--seed", "7"}));
  SCOPED_TRACE(both(run));
  EXPECT_EQ(run.exit_code, 0);
  const Json document = documentOf(path);
  EXPECT_EQ(document["schema"], "tutti-train/1");
  EXPECT_EQ(document["mode"], "train");
  EXPECT_TRUE(document["failure"].is_null());
  const Json& configuration = document["configuration"];
  EXPECT_EQ(configuration["ranks"], 3);
  EXPECT_EQ(configuration["seed"], 7);
  EXPECT_EQ(configuration["batch"]["sequences_per_rank"], Json({32, 32, 32}));
  std::uint64_t parameters = 0;
  for (const Json& tensor : configuration["network"]["tensors"]) {
    parameters += tensor["rows"].get<std::uint64_t>() * tensor["columns"].get<std::uint64_t>();
  }
  EXPECT_EQ(configuration["network"]["parameters"], parameters);

  ASSERT_EQ(document["steps"].size(), 7U);
  std::set<std::string> hashes;
  for (std::size_t i = 0; i < 7; ++i) {
    const Json& step = document["steps"][i];
    EXPECT_EQ(step["step"], i);
    ASSERT_EQ(step["hashes"].size(), 3U);
    EXPECT_EQ(step["hashes"][0], step["hashes"][1]);
    EXPECT_EQ(step["hashes"][0], step["hashes"][2]);
    EXPECT_EQ(step["replicas_equal"], true);
    hashes.insert(step["hashes"][0].get<std::string>());
    if (i == 0) continue;
    ASSERT_EQ(step["losses"].size(), 3U);
    const double mean = (step["losses"][0].get<double>() + step["losses"][1].get<double>() +
                         step["losses"][2].get<double>()) /
                        3;
    EXPECT_NEAR(step["loss"].get<double>(), mean, 1e-12);
    EXPECT_NE(step["losses"][0], step["losses"][1]);
  }
  EXPECT_EQ(hashes.size(), 7U) << "every step changes the state";
  EXPECT_EQ(document["verify"]["passed"], true);
  EXPECT_EQ(document["timing"]["steps"], 6);
}

TEST(TrainJson, GoesToStandardOutputAloneWhenAsked) {
  const CommandResult result = trainOn(2, with(kSmall, {"--json", "-"}), {"--no-prefix"});
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 0);
  const Json document = Json::parse(result.out, nullptr, false);
  EXPECT_EQ(document["configuration"]["ranks"], 2);
  EXPECT_THAT(result.err, HasSubstr("replicas identical after every step: yes (6/6)"));
}

TEST(TrainJson, AFailedRunIsReportedToo) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/run.json";
  const CommandResult result = trainOn(3, with(kSmall, {"--json", path, "--inject-fault", "2:4"}));
  EXPECT_EQ(result.exit_code, 1) << both(result);
  const Json document = documentOf(path);
  EXPECT_THAT(document["failure"].get<std::string>(), HasSubstr("replicas differ after step 4: rank 2"));
  EXPECT_EQ(document["replicas"]["first_difference_step"], 4);
  ASSERT_EQ(document["steps"].size(), 5U);
  EXPECT_EQ(document["steps"][3]["replicas_equal"], true);
  EXPECT_EQ(document["steps"][4]["replicas_equal"], false);
  EXPECT_NE(document["steps"][4]["hashes"][2], document["steps"][4]["hashes"][0]);
  EXPECT_EQ(document["steps"][4]["hashes"][1], document["steps"][4]["hashes"][0]);
}

class TrainHtml : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new ScratchDirectory;
    // A path that would be markup and JSON trouble if it were not escaped.
    const std::string data =
        scratch_->write("a<b>&\"'x'.txt", contentOf("/usr/share/common-licenses/GPL-2").substr(0, 5000));
    result_ =
        trainOn(3, with(kSmall, {"--data", data, "--verify", "--html", pagePath(), "--json", jsonPath()}));
    page_ = contentOf(pagePath());
  }
  static void TearDownTestSuite() {
    delete scratch_;
    scratch_ = nullptr;
  }
  static std::string pagePath() { return scratch_->path() + "/page.html"; }
  static std::string jsonPath() { return scratch_->path() + "/run.json"; }

  static ScratchDirectory* scratch_;
  static CommandResult result_;
  static std::string page_;
};
ScratchDirectory* TrainHtml::scratch_ = nullptr;
CommandResult TrainHtml::result_;
std::string TrainHtml::page_;

TEST_F(TrainHtml, IsWellFormed) {
  SCOPED_TRACE(both(result_));
  EXPECT_EQ(result_.exit_code, 0);
  EXPECT_TRUE(page_.starts_with("<!DOCTYPE html>\n"));
  EXPECT_EQ(markupError(page_.substr(std::string("<!DOCTYPE html>\n").size())), "");
}

TEST_F(TrainHtml, NeedsNothingElse) {
  // No address, no element or property that loads something.
  const std::regex loads(
      R"(https?:|//[a-z]|\bsrc\s*=|\bhref\s*=|url\(|@import|<link|<img|<iframe|<object|fetch\(|XMLHttp)",
      std::regex::icase);
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page_, found, loads)) << found.str();
}

TEST_F(TrainHtml, HoldsTheDocumentOfJson) {
  const Json document = documentOf(jsonPath());
  EXPECT_EQ(document["configuration"]["ranks"], 3);
  EXPECT_EQ(embeddedIn(page_), document);
}

TEST_F(TrainHtml, HasTheFourFiguresWithLabelledAxes) {
  EXPECT_EQ(count(page_, "<figure>"), 4U);
  EXPECT_EQ(count(page_, "<svg "), 4U);
  for (const char* words :
       {"All 3 replicas were bit-identical after each of 6 steps", "Loss of each replica",
        "loss (nats per character)", "Do the replicas agree?", "Bytes on the wire against batch size",
        "payload per step, all ranks (kB)", "Divergence without averaging", "distance between replicas (%)",
        "prefers-color-scheme: dark"}) {
    EXPECT_THAT(page_, HasSubstr(words));
  }
  // 3 ranks x (6 steps + 6 of the extra run): ranks 1 and 2 differ in the extra run, and only there.
  EXPECT_EQ(count(page_, "class=\"cell agrees\""), 3U * 6 + 6);
  EXPECT_EQ(count(page_, "class=\"cell differs\""), 2U * 6);
}

TEST_F(TrainHtml, MeasuresTrafficAndDivergence) {
  const Json experiments = documentOf(jsonPath())["experiments"];
  const Json payload = documentOf(jsonPath())["payload"];
  std::set<std::string> series;
  std::set<std::uint64_t> batches;
  for (const Json& point : experiments["traffic"]) {
    series.insert(point["series"].get<std::string>());
    batches.insert(point["sequences"].get<std::uint64_t>());
    EXPECT_EQ(point["payload_bytes"], 4 * payload["gradient_bytes"].get<std::uint64_t>()) << point;
  }
  EXPECT_THAT(series, ElementsAre("batch", "sequence", "uneven"));
  EXPECT_GE(batches.size(), 5U);
  ASSERT_EQ(experiments["divergence"].size(), 7U);
  for (const Json& point : experiments["divergence"]) {
    EXPECT_EQ(point["spread_with_averaging"], 0.0);
    if (point["step"] == 0) {
      EXPECT_EQ(point["spread_without_averaging"], 0.0);
    } else {
      EXPECT_GT(point["spread_without_averaging"], 0.0);
    }
  }
}

TEST(TrainReports, FailuresLeaveFilesAsTheyWere) {
  const ScratchDirectory scratch;
  const std::string kept = scratch.write("kept.json", "what was there");
  const std::string created = scratch.path() + "/created.html";
  // The data is refused after the paths are tried by none, and before them by all.
  const CommandResult result = trainOn(2, with(kSmall, {"--json", kept, "--html", created, "--hidden", "4096",
                                                        "--context", "64", "--embedding", "256"}));
  SCOPED_TRACE(both(result));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(contentOf(kept), "what was there");
  EXPECT_FALSE(std::filesystem::exists(created));
}

TEST(TrainReports, AFileIsReplacedWhole) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("x", "a long content from before");
  tutti::train::OutputFile("--json", path).write("short");
  EXPECT_EQ(contentOf(path), "short");
  {
    const tutti::train::OutputFile unwritten("--json", scratch.path() + "/y");
    EXPECT_TRUE(std::filesystem::exists(scratch.path() + "/y"));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/y"));
  EXPECT_THROW(tutti::train::OutputFile("--json", "/dev/full").write("x"), std::runtime_error);
}

TEST(TrainReports, BadPathsAndCombinationsAreRefused) {
  const ScratchDirectory scratch;
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases{
      {{"--json", ""}, "--json: needs the path of a file"},
      {{"--json", scratch.path()}, "cannot be written: Is a directory"},
      {{"--json", scratch.path() + "/no/x"}, "cannot be written: No such file or directory"},
      {{"--html", "-"}, "--html -: must be the path of a file"},
      {{"--html", scratch.path() + "/x"}, "--html: one replica has none to agree with"},
      {{"--html", "x", "--json", "x"}, "--html and --json: both name x"},
      {{"--html", "x", "--no-average"}, "--html with --no-average"},
      {{"--html", "x", "--steps", "1"}, "--html: needs --steps of 2 to 10000"},
      {{"--html", "x", "--steps", "10001"}, "--html: needs --steps of 2 to 10000"},
  };
  for (const Case& it : cases) {
    const CommandResult result = trainAlone(it.arguments);
    SCOPED_TRACE(it.message + "\n" + both(result));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(it.message));
    EXPECT_EQ(result.out, "");
  }
  EXPECT_TRUE(scratch.empty());
  const CommandResult full = trainAlone(with(kSmall, {"--json", "/dev/full"}));
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("--json /dev/full: cannot be written: No space left on device"));
}

TEST(SvgChart, TicksAreRoundAndWithin) {
  using tutti::train::ticksOf;
  EXPECT_THAT(ticksOf({.label = "", .low = 0, .high = 100}), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT(ticksOf({.label = "", .low = -1, .high = 1.1}), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_THAT(ticksOf({.label = "", .low = 0, .high = 2, .whole = true}), ElementsAre(0, 1, 2));
  EXPECT_THAT(ticksOf({.label = "", .low = 3, .high = 40, .logarithmic = true}), ElementsAre(4, 8, 16, 32));
}

TEST(SvgChart, ValuesThatAreNoNumbersBreakTheLine) {
  tutti::train::Chart chart("a < b", {.label = "x", .high = 3}, {.label = "y & z", .high = 1});
  chart.line({{0, 0.5, ""}, {1, std::nan(""), ""}, {2, 0.5, ""}, {3, INFINITY, ""}}, "s0");
  chart.marks({{1, std::nan(""), "n"}, {2, 1, "\"note\""}}, "s1", 2);
  const std::string svg = chart.svg();
  EXPECT_EQ(markupError(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_EQ(count(svg, "class=\"mark"), 1U);
}

TEST(SvgChart, ThinningKeepsTheMean) {
  std::vector<tutti::train::Point> points;
  points.reserve(10);
  for (int i = 0; i < 10; ++i) points.push_back({static_cast<double>(i), static_cast<double>(i * i), ""});
  std::size_t per_point = 0;
  const auto few = tutti::train::thinned(points, 4, per_point);
  EXPECT_EQ(per_point, 3U);
  ASSERT_EQ(few.size(), 4U);
  EXPECT_DOUBLE_EQ(few[0].x, 1);
  EXPECT_DOUBLE_EQ(few[0].y, 5.0 / 3);
  EXPECT_DOUBLE_EQ(few[3].y, 81);
  EXPECT_EQ(tutti::train::thinned(points, 10, per_point).size(), 10U);
}

TEST(Markup, TheCheckFindsErrors) {
  EXPECT_EQ(markupError("<a b=\"1\"><c/>text &amp; more</a>"), "");
  EXPECT_NE(markupError("<a><b></a></b>"), "");
  EXPECT_NE(markupError("<a>"), "");
  EXPECT_NE(markupError("<a b=1></a>"), "");
  EXPECT_NE(markupError("<a>x & y</a>"), "");
  EXPECT_NE(markupError("<a b=\"<\"></a>"), "");
  EXPECT_NE(markupError("<a></a><b></b>"), "");
}

}  // namespace
