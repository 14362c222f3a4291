// ncclGroupSimulateEnd: what a group would take, with nothing carried out.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"
#include "tutti/tutti.h"

namespace tutti {
namespace {

using test::lastError;

/// Two ranks of this thread: alone, neither could complete an operation.
class Simulate : public testing::Test {
 protected:
  Simulate() {
    ncclComm_t handles[2];
    check(ncclCommInitAll(handles, 2, nullptr));
    for (const ncclComm_t handle : handles) comms_.emplace_back(handle);
  }

  /// What calls() in a group are estimated to take.
  template <class Calls>
  static float estimate(const Calls& calls) {
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    check(ncclGroupStart());
    calls();
    check(ncclGroupSimulateEnd(&info));
    return info.estimatedTime;
  }

  void allReduce(std::size_t count) { comms_[0].allReduce(in_.data(), out_.data(), count, ncclSum); }

  std::vector<Comm> comms_;
  std::vector<float> in_ = std::vector<float>(1 << 20, 1);
  std::vector<float> out_ = std::vector<float>(1 << 20, 0);
};

TEST_F(Simulate, NothingIsCarriedOut) {
  auto joining = reinterpret_cast<ncclComm_t>(1);
  EXPECT_GT(estimate([&] {
              allReduce(100);
              comms_[0].send(in_.data(), 100, 1);
              check(ncclCommInitRank(&joining, 2, test::newId(), 0));
            }),
            0);
  EXPECT_EQ(out_, std::vector<float>(1 << 20, 0));
  EXPECT_EQ(joining, nullptr);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // the group is closed
  Group group;                                  // and forgotten
  for (Comm& comm : comms_) comm.allReduce(in_.data(), out_.data() + comm.rank(), 1, ncclSum);
  group.end();
  EXPECT_EQ(out_[0], 2);
}

TEST_F(Simulate, MoreTakesLonger) {
  const float none = estimate([] {});
  const float small = estimate([&] { allReduce(1); });
  const float large = estimate([&] { allReduce(1 << 20); });
  EXPECT_EQ(none, 0);
  EXPECT_GT(small, 0);
  EXPECT_GT(large, 10 * small);
  EXPECT_FLOAT_EQ(estimate([&] {
                    allReduce(1 << 20);
                    allReduce(1 << 20);
                  }),
                  2 * large);
}

TEST_F(Simulate, CommunicatorsAndDirectionsGoSideBySide) {
  const float one = estimate([&] { allReduce(1 << 20); });
  EXPECT_FLOAT_EQ(estimate([&] {
                    allReduce(1 << 20);
                    comms_[1].allReduce(in_.data(), out_.data(), 1 << 20, ncclSum);
                  }),
                  one);
  const float sent = estimate([&] { comms_[0].send(in_.data(), 1 << 20, 1); });
  EXPECT_GT(sent, 0);
  EXPECT_FLOAT_EQ(estimate([&] {
                    comms_[0].send(in_.data(), 1 << 20, 1);
                    comms_[0].receive(out_.data(), 1 << 20, 1);
                  }),
                  sent);
}

TEST_F(Simulate, OnlyTheOutermostEndCounts) {
  ncclSimInfo_t inner = NCCL_SIM_INFO_INITIALIZER;
  ncclSimInfo_t outer = NCCL_SIM_INFO_INITIALIZER;
  check(ncclGroupStart());
  check(ncclGroupStart());
  allReduce(100);
  EXPECT_EQ(ncclGroupSimulateEnd(&inner), ncclSuccess);
  EXPECT_EQ(inner.estimatedTime, NCCL_UNDEF_FLOAT);
  EXPECT_EQ(ncclGroupSimulateEnd(&outer), ncclSuccess);
  EXPECT_GT(outer.estimatedTime, 0);
  EXPECT_EQ(out_[0], 0);
}

TEST_F(Simulate, ARefusedCallIsTheResult) {
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  check(ncclGroupStart());
  EXPECT_EQ(ncclBroadcast(in_.data(), out_.data(), 1, ncclFloat, 5, comms_[0].handle(), nullptr),
            ncclInvalidArgument);
  EXPECT_EQ(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
  EXPECT_NE(lastError().find("root 5 is not"), std::string::npos) << lastError();
  EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
}

TEST_F(Simulate, InfosAreChecked) {
  const auto refused = [&](ncclSimInfo_t* info, const std::string& words) {
    check(ncclGroupStart());
    allReduce(100);
    EXPECT_EQ(ncclGroupSimulateEnd(info), ncclInvalidArgument);
    EXPECT_NE(lastError().find(words), std::string::npos) << lastError();
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);  // closed all the same
    EXPECT_EQ(out_[0], 0);
  };
  refused(nullptr, "simInfo is NULL");
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  info.magic = 0;
  refused(&info, "Initialize it with NCCL_SIM_INFO_INITIALIZER");
  info = NCCL_SIM_INFO_INITIALIZER;
  info.size = offsetof(ncclSimInfo_t, estimatedTime);
  refused(&info, "size 16");
  info = NCCL_SIM_INFO_INITIALIZER;
  info.version = 22100;  // there was none yet
  refused(&info, "version 22100");

  struct Newer {
    ncclSimInfo_t known = NCCL_SIM_INFO_INITIALIZER;
    int more = 7;
  } newer;
  newer.known.size = sizeof(newer);
  newer.known.version = 29900;
  check(ncclGroupStart());
  allReduce(100);
  EXPECT_EQ(ncclGroupSimulateEnd(&newer.known), ncclSuccess);
  EXPECT_GT(newer.known.estimatedTime, 0);
  EXPECT_EQ(newer.more, 7);
  EXPECT_EQ(ncclGroupSimulateEnd(&newer.known), ncclInvalidUsage);
}

}  // namespace
}  // namespace tutti
