// How long a wait has lasted, and how long nothing moves, as deadlines count it.
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/core/wait.h"
#include "runtime/monitor.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
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

/// A process that was stopped, or a machine that stood still.
TEST(WaitTimes, WhoWasAwayHimselfDoesNotCountThat) {
  const WaitTime::TimePoint start{seconds(1000)};
  WaitTime time(start);
  EXPECT_EQ(time.look(start + milliseconds(20)), milliseconds(20));
  EXPECT_EQ(time.look(start + seconds(3600)), milliseconds(1020));
  EXPECT_EQ(time.look(start + seconds(3600) + milliseconds(20)), milliseconds(1040));
}

/// So a machine on which looks are rare has deadlines, too.
TEST(WaitTimes, GoOnHoweverRareTheLooksAre) {
  WaitTime::TimePoint now{seconds(1000)};
  WaitTime time(now);
  for (int i = 0; i < 60; ++i) time.look(now += seconds(5));
  EXPECT_EQ(time.waited(), seconds(60));
}

}  // namespace
}  // namespace tutti::test
