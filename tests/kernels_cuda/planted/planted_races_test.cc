// ThreadSanitizer must see every bug that is planted, and none where there is none.
#include <gtest/gtest.h>

#include <string>

#include "tests/harness/command.h"

namespace tutti::test {
namespace {

constexpr int kRaceStatus = 66;

CommandResult run(const std::string& kernel) {
  return runCommand({"planted_races", kernel},
                    {{"LD_LIBRARY_PATH", TUTTI_EMULATOR_DIR},
                     {"TSAN_OPTIONS", "halt_on_error=1:exitcode=" + std::to_string(kRaceStatus)}},
                    std::chrono::minutes(5));
}

class PlantedRaces : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(, PlantedRaces,
                         testing::Values("NoBarrierBeforeFlag", "NoBarrierAfterWait", "RelaxedFlag",
                                         "RelaxedWait", "EarlyCredit"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(PlantedRaces, AreReported) {
  const std::string kernel = std::string("planted") + GetParam();
  const auto result = run(kernel);
  EXPECT_EQ(result.exit_code, kRaceStatus) << result.err;
  EXPECT_NE(result.err.find("WARNING: ThreadSanitizer: data race"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("'" + kernel + " block 0,0,0 thread "), std::string::npos) << result.err;
}

TEST(PlantedRace, IsNotSeenWhereNoneIs) {
  const auto result = run("tuttiTransfers");
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace tutti::test
