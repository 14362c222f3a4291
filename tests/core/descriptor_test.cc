#include "runtime/core/descriptor.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Descriptor, ReadsLikeTheCall) {
  EXPECT_EQ(
      describe(
          {.collective = Collective::all_reduce, .type = DataType::bfloat16, .op = RedOp::avg, .count = 7}),
      "AllReduce avg bfloat16 ×7");
  EXPECT_EQ(describe({.collective = Collective::all_reduce, .type = DataType::float32, .count = 409'598}, 7),
            "AllReduce #7 sum float ×409598");
  EXPECT_EQ(describe(transferDescriptor(40)), "Send/Recv of 40 bytes");
  EXPECT_EQ(describe({.collective = Collective::broadcast, .type = DataType::int32, .root = 3, .count = 1}),
            "Broadcast int32 ×1 root 3");
  EXPECT_EQ(describe({.collective = Collective::reduce,
                      .type = DataType::int8,
                      .op = RedOp::max,
                      .root = 4,
                      .count = 2}),
            "Reduce max int8 ×2 root 4");
  EXPECT_EQ(describe({.collective = Collective::all_gather, .type = DataType::float64, .count = 0}),
            "AllGather double ×0");
  EXPECT_EQ(describe({.collective = Collective::all_to_all, .type = DataType::float16, .count = 9}),
            "AlltoAll half ×9");
  EXPECT_EQ(describe({.collective = Collective::gather, .type = DataType::uint8, .root = 1, .count = 2}),
            "Gather uint8 ×2 root 1");
  EXPECT_EQ(describe({.collective = Collective::scatter, .type = DataType::int64, .root = 2, .count = 3}),
            "Scatter int64 ×3 root 2");
}

TEST(Descriptor, DamagedOneIsNotReadPastItsTables) {
  Descriptor damaged;
  damaged.type = static_cast<DataType>(200);
  EXPECT_EQ(describe(damaged), "an operation this version does not know");
}

}  // namespace
}  // namespace tutti
