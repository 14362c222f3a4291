// Lists of operands that are described, not stored.
#include <gtest/gtest.h>

#include <vector>

#include "collectives/executor.h"
#include "collectives/mesh.h"

namespace tutti {
namespace {

using Where = Operand::Where;

std::vector<int> linksOf(const Operands& operands) {
  std::vector<int> links;
  for (std::uint32_t i = 0; i < operands.size(); ++i) {
    const bool is_slot =
        operands[i].where == Where::inbound_slot || operands[i].where == Where::outbound_slot;
    links.push_back(is_slot ? operands[i].link : -1);
  }
  return links;
}

TEST(Operands, OneOrTwoAreAsTheyWereGiven) {
  const Operands one = input(3);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].where, Where::input);
  EXPECT_EQ(one[0].offset, 3U);
  const Operands two = {output(4), slot(Outbound{7})};
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].offset, 4U);
  EXPECT_EQ(two[1].where, Where::outbound_slot);
  EXPECT_EQ(two[1].link, 7);
}

TEST(Operands, SlotsLieInARow) {
  EXPECT_EQ(linksOf(Operands::slots(slot(Inbound{4}), 3)), (std::vector{4, 5, 6}));
}

TEST(Operands, AnEntryCanBeAnotherOperand) {
  const Operands list = Operands::slots(slot(Inbound{4}), 3).with(1, input(9).own());
  EXPECT_EQ(linksOf(list), (std::vector{4, -1, 6}));
  EXPECT_EQ(list[1].offset, 9U);
  EXPECT_TRUE(list[1].is_own);
}

TEST(Operands, AnEntryCanBeLeftOut) {
  const Operands list = Operands::slots(slot(Inbound{4}), 4);
  EXPECT_EQ(linksOf(list.without(0)), (std::vector{5, 6, 7}));
  EXPECT_EQ(linksOf(list.without(2)), (std::vector{4, 5, 7}));
  EXPECT_EQ(linksOf(list.without(3)), (std::vector{4, 5, 6}));
  EXPECT_EQ(linksOf(list.with(2, input(0)).without(1)), (std::vector{4, -1, 7}));
  EXPECT_EQ(linksOf(list.with(1, input(0)).without(2)), (std::vector{4, -1, 7}));
  EXPECT_EQ(linksOf(list.with(1, input(0)).without(1)), (std::vector{4, 6, 7}));
}

TEST(Mesh, ListsEveryRankInOrder) {
  const Mesh mesh{4, 2};
  EXPECT_EQ(linksOf(mesh.contributions(input(0))), (std::vector{0, 1, -1, 3}));
  EXPECT_TRUE(mesh.contributions(input(0))[0].is_own);
  EXPECT_TRUE(mesh.contributions(input(0))[2].is_own);
  EXPECT_EQ(linksOf(mesh.results(output(0))), (std::vector{0, 1, -1, 3}));
  EXPECT_EQ(linksOf(mesh.outboundSlots()), (std::vector{0, 1, 3}));
}

}  // namespace
}  // namespace tutti
