// What traffic.h and split.h make of the environment: pure values, against tables by hand.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "bench/collective.h"
#include "bench/split.h"
#include "bench/traffic.h"

namespace tutti::perf {
namespace {

std::vector<std::size_t> rowOf(const Traffic& traffic, int from, int nranks, std::size_t total) {
  std::vector<std::size_t> row;
  row.reserve(static_cast<std::size_t>(nranks));
  for (int to = 0; to < nranks; ++to) row.push_back(traffic.bytes(from, to, nranks, total));
  return row;
}

TEST(Traffic, GrowsWithTheDistance) {
  EXPECT_EQ(rowOf(Traffic(0), 1, 4, 960), (std::vector<std::size_t>{240, 240, 240, 240}));
  EXPECT_EQ(rowOf(Traffic(1), 0, 4, 960), (std::vector<std::size_t>{0, 160, 320, 480}));
  EXPECT_EQ(rowOf(Traffic(1), 3, 4, 960), (std::vector<std::size_t>{160, 320, 480, 0}));
  EXPECT_EQ(rowOf(Traffic(0.5), 0, 4, 960),
            (std::vector<std::size_t>{112, 192, 272, 352}));  // 120, ... in 16s
  EXPECT_EQ(rowOf(Traffic(1), 0, 1, 100), (std::vector<std::size_t>{96}));
}

TEST(Traffic, MatrixIsTakenAsItIs) {
  const Traffic traffic = Traffic::ofMatrix("100 200 150\n\n50 1e2 75\n300 150 0\n", 2);
  EXPECT_EQ(traffic.matrixRanks(), 3);
  EXPECT_EQ(rowOf(traffic, 0, 3, 7), (std::vector<std::size_t>{192, 400, 288}));
  EXPECT_EQ(rowOf(traffic, 2, 2, 7), (std::vector<std::size_t>{592, 288}));
  for (const char* text : {"", "\n \n", "1 2\n3\n", "1 2\n", "1 x\n3 4\n", "1 -2\n3 4\n", "1 nan\n3 4\n"}) {
    EXPECT_THROW(Traffic::ofMatrix(text, 1), std::invalid_argument) << text;
  }
}

TEST(Traffic, LayoutsAddUp) {
  const Traffic traffic = Traffic::ofMatrix("0 64 128\n32 0 16\n0 0 0\n", 1);
  Collective collective = kAllToAllV;
  collective.traffic = &traffic;
  const Layout first = collective.layout(1000, 4, 3, 0);
  EXPECT_EQ(first.send_blocks, (std::vector<std::size_t>{0, 16, 32}));
  EXPECT_EQ(first.recv_blocks, (std::vector<std::size_t>{0, 8, 0}));
  EXPECT_EQ(first.send, 48U);
  EXPECT_EQ(first.recv, 8U);
  EXPECT_EQ(collective.layout(1000, 4, 3, 2).recv, 36U);
  EXPECT_EQ(collective.span(1000, 4, 3), 48U);  // of the busiest rank
}

TEST(Split, Groups) {
  const auto groupsOf = [](const std::string& text, int processes) {
    std::vector<int> numbers;
    numbers.reserve(static_cast<std::size_t>(processes));
    for (int process = 0; process < processes; ++process) {
      numbers.push_back(Split(text).placeOf(process, processes).number);
    }
    return numbers;
  };
  EXPECT_EQ(groupsOf("MOD 2", 6), (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(groupsOf("%0x2", 4), (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(groupsOf("DIV 2", 6), (std::vector<int>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(groupsOf("/2", 4), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(groupsOf("and 0b10", 4), (std::vector<int>{0, 0, 2, 2}));
  EXPECT_EQ(groupsOf("& 0x0", 3), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(groupsOf("OR 1", 4), (std::vector<int>{1, 1, 3, 3}));
  EXPECT_EQ(groupsOf("|0", 2), (std::vector<int>{0, 1}));
  const GroupPlace place = Split("MOD 3").placeOf(5, 9);
  EXPECT_EQ(place.number, 2);
  EXPECT_EQ(place.processes, 3);
  EXPECT_EQ(place.index, 1);
  EXPECT_EQ(place.leader, 2);
  const GroupPlace whole = Split().placeOf(2, 3);
  EXPECT_EQ(whole.processes, 3);
  EXPECT_EQ(whole.index, 2);
}

TEST(Split, WhatIsNoneIsRefused) {
  for (const char* text :
       {"", "8", "MOD", "MOD x", "MOD 0", "DIV 0", "MOD -1", "XOR 1", "AND 0x", "MOD 2 3"}) {
    EXPECT_THROW(Split{text}, std::invalid_argument) << text;
  }
  EXPECT_THROW(Split("MOD 2").placeOf(0, 5), std::invalid_argument);  // 3 and 2
}

}  // namespace
}  // namespace tutti::perf
