// Send and receive, with ranks as threads and with all ranks in one thread.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"
#include "tests/harness/transfers.h"

namespace tutti {
namespace {

using test::lastError;

using std::chrono::milliseconds;

#define EXPECT_SAYS(words) EXPECT_NE(lastError().find(words), std::string::npos) << lastError()

void expectSays(const std::string& error, const std::string& words) {
  EXPECT_NE(error.find(words), std::string::npos) << error;
}

using test::allToAllV;
using test::message;
using test::require;

TEST(Transfers, OneSendAndOneReceiveOutsideAGroup) {
  for (const std::size_t count : {1U, 1000U, 300'001U}) {
    EXPECT_EQ(test::runRanks(2,
                             [count](Comm& comm) {
                               auto data = message(0, 1, 0, comm.rank() == 0 ? count : 0);
                               data.resize(count);
                               if (comm.rank() == 0) comm.send(data.data(), count, 1);
                               if (comm.rank() == 1) comm.receive(data.data(), count, 0);
                               require(data == message(0, 1, 0, count), "wrong data");
                             }),
              test::noErrors(2));
  }
}

TEST(Transfers, ExchangeWithBothNeighbours) {
  for (const int nranks : {2, 3, 5, 8}) {
    EXPECT_EQ(test::runRanks(
                  nranks,
                  [nranks](Comm& comm) {
                    const int right = (comm.rank() + 1) % nranks;
                    const int left = (comm.rank() + nranks - 1) % nranks;
                    for (const std::size_t count : {1U, 500U, 100'000U}) {
                      const auto to_right = message(comm.rank(), right, 1, count);
                      const auto to_left = message(comm.rank(), left, 2, count);
                      std::vector<std::int32_t> from_left(count);
                      std::vector<std::int32_t> from_right(count);
                      Group group;
                      comm.send(to_right.data(), count, right);
                      comm.receive(from_left.data(), count, left);
                      comm.send(to_left.data(), count, left);
                      comm.receive(from_right.data(), count, right);
                      group.end();
                      require(from_left == message(left, comm.rank(), 1, count), "wrong from the left");
                      require(from_right == message(right, comm.rank(), 2, count), "wrong from the right");
                    }
                  }),
              test::noErrors(nranks))
        << nranks;
  }
}

TEST(Transfers, AllToAllWithSizesOfTheirOwn) {
  for (const int nranks : {1, 2, 4, 9}) {
    EXPECT_EQ(test::runRanks(nranks,
                             [](Comm& comm) {
                               for (std::uint64_t seed = 1; seed <= 10; ++seed) allToAllV({&comm}, seed);
                             }),
              test::noErrors(nranks))
        << nranks;
  }
}

TEST(Transfers, AllToAllOfAllRanksInOneThread) {
  for (const int nranks : {2, 5, 16}) {
    std::vector<ncclComm_t> handles(static_cast<std::size_t>(nranks));
    check(ncclCommInitAll(handles.data(), nranks, nullptr));
    std::vector<Comm> comms;
    std::vector<Comm*> pointers;
    comms.reserve(handles.size());
    pointers.reserve(handles.size());
    for (const ncclComm_t handle : handles) comms.emplace_back(handle);
    for (Comm& comm : comms) pointers.push_back(&comm);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) allToAllV(pointers, seed);
  }
}

TEST(Transfers, ManyMessagesOfOnePairMatchInOrder) {
  constexpr int kMessages = 200;
  const auto countOfMessage = [](int k) { return static_cast<std::size_t>(k * 37 % 5000 + 1); };
  EXPECT_EQ(test::runRanks(2,
                           [&](Comm& comm) {
                             const int self = comm.rank();
                             const int peer = 1 - self;
                             std::vector<std::vector<std::int32_t>> sent;
                             std::vector<std::vector<std::int32_t>> received;
                             Group group;
                             for (int k = 0; k < kMessages; ++k) {
                               sent.push_back(message(self, peer, k, countOfMessage(k)));
                               received.emplace_back(countOfMessage(k));
                             }
                             for (int k = 0; k < kMessages; ++k) {
                               comm.send(sent[static_cast<std::size_t>(k)].data(), countOfMessage(k), peer);
                             }
                             for (int k = 0; k < kMessages; ++k) {
                               comm.receive(received[static_cast<std::size_t>(k)].data(), countOfMessage(k),
                                            peer);
                             }
                             group.end();
                             for (int k = 0; k < kMessages; ++k) {
                               require(received[static_cast<std::size_t>(k)] ==
                                           message(peer, self, k, countOfMessage(k)),
                                       "wrong message " + std::to_string(k));
                             }
                           }),
            test::noErrors(2));
}

TEST(Transfers, CollectivesOfAGroupComeFirst) {
  EXPECT_EQ(test::runRanks(3,
                           [](Comm& comm) {
                             const int right = (comm.rank() + 1) % 3;
                             const int left = (comm.rank() + 2) % 3;
                             for (int round = 0; round < 20; ++round) {
                               std::int32_t sum = comm.rank() + 1;
                               std::int32_t from_left = 0;
                               Group group;
                               comm.send(&sum, 1, right);  // sends what the all-reduce leaves
                               comm.receive(&from_left, 1, left);
                               comm.allReduce(&sum, &sum, 1, ncclSum);
                               group.end();
                               require(sum == 6 && from_left == 6, "the transfer came first");
                             }
                           }),
            test::noErrors(3));
}

TEST(Transfers, OnStreams) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             // On a stream each, both sides may send first.
                             Stream stream;
                             const auto mine = message(comm.rank(), 1 - comm.rank(), 5, 400'000);
                             std::vector<std::int32_t> theirs(mine.size());
                             Group group;
                             comm.send(mine.data(), mine.size(), 1 - comm.rank(), stream);
                             comm.receive(theirs.data(), theirs.size(), 1 - comm.rank(), stream);
                             group.end();
                             stream.synchronize();
                             require(theirs == message(1 - comm.rank(), comm.rank(), 5, 400'000),
                                     "wrong data");
                           }),
            test::noErrors(2));
}

TEST(Transfers, ToOneselfInAGroup) {
  Comm comm(1, test::newId(), 0);
  std::int32_t first[3] = {1, 2, 3};
  std::int32_t second[2] = {4, 5};
  std::int32_t out[5] = {};
  Group group;
  comm.receive(out, 3, 0);
  comm.send(first, 3, 0);
  comm.send(second, 2, 0);
  comm.receive(out + 3, 2, 0);
  group.end();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], i + 1);
}

TEST(Transfers, ToOneselfWithoutTheOtherHalfIsRefused) {
  Comm comm(1, test::newId(), 0);
  std::int32_t data[3] = {1, 2, 3};
  EXPECT_EQ(ncclSend(data, 3, ncclInt32, 0, comm.handle(), nullptr), ncclInvalidUsage);
  EXPECT_SAYS("1 Send(s) to itself, but 0 Recv(s)");
  check(ncclGroupStart());
  std::int32_t sum = 0;
  comm.allReduce(data, &sum, 1, ncclSum);
  comm.receive(data, 3, 0);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_SAYS("0 Send(s) to itself, but 1 Recv(s)");
  EXPECT_EQ(sum, 0);
  check(ncclGroupStart());
  comm.send(data, 3, 0);
  comm.receive(data, 2, 0);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_SAYS("of 12 bytes, but its Recv of 8 bytes");
  comm.allReduce(data, &sum, 1, ncclSum);  // none of it hurt the communicator
  EXPECT_EQ(sum, 1);
}

TEST(Transfers, BadArgumentsAreRefused) {
  Comm comm(1, test::newId(), 0);
  float value = 0;
  EXPECT_EQ(ncclSend(&value, 1, ncclFloat, 1, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("Send: peer 1 is not one of ranks 0 to 0");
  EXPECT_EQ(ncclRecv(&value, 1, ncclFloat, -1, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("Recv: peer -1");
  EXPECT_EQ(ncclSend(nullptr, 1, ncclFloat, 0, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("Send: sendbuff is NULL");
  EXPECT_EQ(ncclRecv(nullptr, 1, ncclFloat, 0, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("Recv: recvbuff is NULL");
  EXPECT_EQ(ncclSend(&value, 1, ncclNumTypes, 0, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("datatype 12");
  EXPECT_EQ(ncclSend(&value, SIZE_MAX / 2, ncclFloat, 0, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("exceeds what memory can hold");
  EXPECT_EQ(ncclRecv(&value, SIZE_MAX / 8, ncclFloat, 0, comm.handle(), nullptr), ncclInvalidArgument);
  EXPECT_SAYS("Recv: recvbuff: 9223372036854775804 bytes at ");
  EXPECT_SAYS("go beyond the end of the address space");
}

TEST(TransferFaults, DifferentSizesAreNamedOnBothSides) {
  const auto errors = test::runRanks(2, [](Comm& comm) {
    std::vector<std::int32_t> data(20);
    if (comm.rank() == 0) comm.send(data.data(), 10, 1);
    if (comm.rank() == 1) comm.receive(data.data(), 20, 0);
    comm.barrier();
  });
  for (const auto& error : errors) {
    expectSays(error, "rank 0 (pid ");
    expectSays(error, "sends 40 bytes");
    expectSays(error, "waits to receive 80 bytes");
  }
}

TEST(TransferFaults, ACollectiveMeetingATransferNamesBoth) {
  const auto errors = test::runRanks(2, [](Comm& comm) {
    std::vector<float> data(1'000'000);  // too much for packets: it comes over the link of the transfer
    if (comm.rank() == 0) {
      comm.receive(data.data(), 10, 1);
    } else {
      comm.broadcast(data.data(), data.data(), data.size(), ncclFloat32, 1);
      comm.barrier();
    }
  });
  for (const auto& error : errors) {
    expectSays(error, " 40 bytes");  // by what came, or by where the peer is, whichever is seen first
    expectSays(error, "Broadcast #1 float ×1000000 root 1");
  }
}

TEST(TransferFaults, APeerInsideAnotherCollectiveIsNamed) {
  // Rank 1 waits for all in the all-gather; rank 0 waits for rank 1's data: only the board can tell.
  const auto errors = test::runRanks(3, [](Comm& comm) {
    std::vector<std::int32_t> data(300);
    if (comm.rank() == 0) {
      comm.receive(data.data(), 10, 1);
    } else {
      comm.broadcast(data.data(), data.data(), 7, ncclInt32, 0);
    }
  });
  for (const auto& error : errors) {
    expectSays(error, "has not sent 40 bytes that rank 0 (pid ");
    expectSays(error, "Broadcast #1 int32 ×7 root 0");
    expectSays(error, "which rank 0 (pid ");
  }
}

TEST(TransferFaults, APeerThatLeavesIsNamed) {
  const auto errors = test::runRanks(2, [](Comm& comm) {
    std::vector<std::int32_t> data(10);
    comm.barrier();
    if (comm.rank() == 0) comm.receive(data.data(), 10, 1);
  });
  expectSays(errors[0], "rank 1 (pid ");
  expectSays(errors[0], "has not sent 40 bytes that rank 0 (pid ");
  expectSays(errors[0], "destroyed its communicator");
}

TEST(TransferFaults, APeerThatSentAndLeftIsNoFault) {
  for (int round = 0; round < 10; ++round) {
    const ncclUniqueId id = test::newId();
    std::atomic<bool> gone{false};
    EXPECT_EQ(test::runThreads(2,
                               [&](int rank) {
                                 Comm comm(2, id, rank);
                                 const auto sent = message(1, 0, round, 100'000);
                                 std::vector<std::int32_t> data(sent.size());
                                 if (rank == 1) {
                                   comm.send(sent.data(), sent.size(), 0);
                                   return;
                                 }
                                 comm.receive(data.data(), data.size(), 1);
                                 require(data == sent, "wrong data");
                               }),
              test::noErrors(2));
  }
}

TEST(TransferFaults, AbortEndsAWaitingReceive) {
  const ncclUniqueId id = test::newId();
  std::atomic<ncclComm_t> of_rank_0{nullptr};
  const auto errors = test::runThreads(2, [&](int rank) {
    Comm comm(2, id, rank);
    std::int32_t value = 0;
    if (rank == 1) {
      comm.receive(&value, 1, 0);  // rank 0 is in the group that it comes from
      EXPECT_EQ(ncclCommAbort(of_rank_0), ncclSuccess);
      return;
    }
    check(ncclGroupStart());
    comm.send(&value, 1, 1);
    comm.receive(&value, 1, 1);
    of_rank_0 = comm.take();
    EXPECT_EQ(ncclGroupEnd(), ncclRemoteError);
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

TEST(TransferFaults, SentAndNeverReceivedIsToldAtTheEnd) {
  const auto errors = test::runThreads(1, [](int) {
    ncclComm_t comms[2];
    check(ncclCommInitAll(comms, 2, nullptr));
    std::int32_t value = 1;
    check(ncclSend(&value, 1, ncclInt32, 1, comms[0], nullptr));  // a slot has room for it
    EXPECT_EQ(ncclCommDestroy(comms[1]), ncclInvalidUsage);
    EXPECT_SAYS("rank 0 sent data for Send/Recv of 4 bytes");
    EXPECT_EQ(ncclCommDestroy(comms[0]), ncclRemoteError);
    EXPECT_SAYS("4 bytes that this rank sent for Send/Recv of 4 bytes were never received: rank 1 (pid ");
  });
  EXPECT_EQ(errors, test::noErrors(1));
}

}  // namespace
}  // namespace tutti
