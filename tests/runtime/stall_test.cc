// How long nothing moves, as monitors count it.
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/monitor.h"

namespace tutti::test {
namespace {

using std::chrono::seconds;

TEST(Stall, CountsFromTheStartWhereNothingExplainsIt) {
  Stall stall;
  EXPECT_EQ(stall.lasted(seconds(1), false), seconds(1));
  EXPECT_EQ(stall.lasted(seconds(70), false), seconds(70));
}

TEST(Stall, CountsFromTheLastRankThatCame) {
  Stall stall;
  EXPECT_EQ(stall.lasted(seconds(70), true), seconds(0));
  EXPECT_EQ(stall.lasted(seconds(71), false), seconds(1));
  EXPECT_EQ(stall.lasted(seconds(131), false), seconds(61));
}

TEST(Stall, AnotherWaitBeginsAnew) {
  Stall stall;
  EXPECT_EQ(stall.lasted(seconds(70), true), seconds(0));
  EXPECT_EQ(stall.lasted(seconds(2), false), seconds(2));
  EXPECT_EQ(stall.lasted(seconds(60), false), seconds(60));
}

}  // namespace
}  // namespace tutti::test
