#include "runtime/core/descriptor.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Descriptor, ReadsLikeTheCall) {
  EXPECT_EQ(
      describe(
          {.collective = Collective::all_reduce, .type = DataType::bfloat16, .op = RedOp::avg, .count = 7}),
      "AllReduce(count 7, bfloat16, avg)");
  EXPECT_EQ(describe({.collective = Collective::broadcast, .type = DataType::int32, .root = 3, .count = 1}),
            "Broadcast(count 1, int32, root 3)");
  EXPECT_EQ(describe({.collective = Collective::reduce,
                      .type = DataType::int8,
                      .op = RedOp::max,
                      .root = 4,
                      .count = 2}),
            "Reduce(count 2, int8, max, root 4)");
  EXPECT_EQ(describe({.collective = Collective::all_gather, .type = DataType::float64, .count = 0}),
            "AllGather(count 0, double)");
  EXPECT_EQ(describe({.collective = Collective::all_to_all, .type = DataType::float16, .count = 9}),
            "AlltoAll(count 9, half)");
  EXPECT_EQ(describe({.collective = Collective::gather, .type = DataType::uint8, .root = 1, .count = 2}),
            "Gather(count 2, uint8, root 1)");
  EXPECT_EQ(describe({.collective = Collective::scatter, .type = DataType::int64, .root = 2, .count = 3}),
            "Scatter(count 3, int64, root 2)");
}

TEST(Descriptor, DamagedOneIsNotReadPastItsTables) {
  Descriptor damaged;
  damaged.type = static_cast<DataType>(200);
  EXPECT_EQ(describe(damaged), "an operation this version does not know");
}

}  // namespace
}  // namespace tutti
