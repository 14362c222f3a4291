// Host streams: order, independence, errors, and their end.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/refusals.h"

namespace tutti {
namespace {

using test::lastError;

using std::chrono::milliseconds;

#define EXPECT_SAYS(words) EXPECT_NE(lastError().find(words), std::string::npos) << lastError()

TEST(Streams, HandlesAreChecked) {
  Comm comm(1, test::newId(), 0);
  float value = 1;
  const auto call = [&](cudaStream_t stream) {
    return ncclAllReduce(&value, &value, 1, ncclFloat, ncclSum, comm.handle(), stream);
  };
  EXPECT_EQ(tuttiStreamCreate(nullptr), ncclInvalidArgument);
  tuttiStream_t stream = nullptr;
  check(tuttiStreamCreate(&stream));
  EXPECT_EQ(call(stream), ncclSuccess);
  EXPECT_EQ(tuttiStreamSynchronize(stream), ncclSuccess);
  EXPECT_EQ(tuttiStreamDestroy(stream), ncclSuccess);
  EXPECT_EQ(call(stream), ncclInvalidArgument);
  EXPECT_SAYS("stream is neither NULL nor a stream of tuttiStreamCreate");
  EXPECT_EQ(tuttiStreamSynchronize(stream), ncclInvalidArgument);
  EXPECT_EQ(tuttiStreamQuery(stream), ncclInvalidArgument);
  EXPECT_EQ(tuttiStreamDestroy(stream), ncclInvalidArgument);
  EXPECT_EQ(call(reinterpret_cast<cudaStream_t>(0x1)), ncclInvalidArgument);
  EXPECT_EQ(tuttiStreamDestroy(nullptr), ncclSuccess);
  EXPECT_EQ(tuttiStreamSynchronize(nullptr), ncclSuccess);
  EXPECT_EQ(tuttiStreamQuery(nullptr), ncclSuccess);
}

TEST(Streams, TheCallReturnsAndTheWorkRunsInOrder) {
  EXPECT_EQ(test::runRanks(3,
                           [](Comm& comm) {
                             Stream stream;
                             std::vector<std::int32_t> data(20'000, 1);
                             for (int i = 0; i < 10; ++i) {
                               comm.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
                             }
                             stream.synchronize();
                             if (!stream.isDone()) throw std::runtime_error("not done after synchronize");
                             if (data != std::vector<std::int32_t>(20'000, 59049)) {
                               throw std::runtime_error("wrong sum");
                             }
                           }),
            test::noErrors(3));
}

TEST(Streams, OneThreadDrivesTwoRanksWithoutAGroup) {
  // On NULL streams the first call would wait for ever; on streams of their own both are under way.
  ncclComm_t comms[2];
  check(ncclCommInitAll(comms, 2, nullptr));
  {
    Stream streams[2];
    std::vector<float> data[2] = {std::vector<float>(70'000, 1), std::vector<float>(70'000, 2)};
    check(ncclAllReduce(data[0].data(), data[0].data(), data[0].size(), ncclFloat, ncclSum, comms[0],
                        streams[0]));
    EXPECT_EQ(tuttiStreamQuery(streams[0]), ncclInProgress);  // rank 1 has not been asked yet
    check(ncclAllReduce(data[1].data(), data[1].data(), data[1].size(), ncclFloat, ncclSum, comms[1],
                        streams[1]));
    for (Stream& stream : streams) stream.synchronize();
    for (const auto& values : data) EXPECT_EQ(values, std::vector<float>(70'000, 3));
  }
  for (const ncclComm_t comm : comms) check(ncclCommDestroy(comm));
}

TEST(Streams, WorkOfOneCommunicatorIsSerialWhateverItsStreams) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream streams[3];
                             std::vector<std::int32_t> data(3000, 1);
                             const auto next = [&](int i) -> cudaStream_t {
                               return i % 4 == 3 ? nullptr : streams[i % 4].handle();
                             };
                             // Each step reads what the one before wrote, on another stream or on none.
                             for (int i = 0; i < 24; ++i) {
                               comm.allReduce(data.data(), data.data(), data.size(),
                                              i % 2 == 0 ? ncclSum : ncclAvg, next(i));
                             }
                             for (Stream& stream : streams) stream.synchronize();
                             if (data != std::vector<std::int32_t>(3000, 1 << 12)) {
                               throw std::runtime_error("wrong sum: " + std::to_string(data[0]));
                             }
                           }),
            test::noErrors(2));
}

TEST(Streams, CommunicatorsOnDifferentStreamsDoNotWaitForEachOther) {
  // Rank 1 takes part in the first communicator's work only after the second's is done.
  const ncclUniqueId first = test::newId();
  const ncclUniqueId second = test::newId();
  EXPECT_EQ(test::runThreads(2,
                             [&](int rank) {
                               Comm a(2, first, rank);
                               Comm b(2, second, rank);
                               Stream on_a;
                               Stream on_b;
                               float x = 1;
                               float y = 1;
                               if (rank == 0) a.allReduce(&x, &x, 1, ncclSum, on_a);
                               b.allReduce(&y, &y, 1, ncclSum, on_b);
                               on_b.synchronize();
                               if (rank == 1) a.allReduce(&x, &x, 1, ncclSum, on_a);
                               on_a.synchronize();
                               if (x != 2 || y != 2) throw std::runtime_error("wrong sum");
                             }),
            test::noErrors(2));
}

TEST(Streams, AGroupOnSeveralStreamsWaitsForAllOfThem) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream streams[2];
                             std::int32_t a = 1;
                             std::int32_t b = 1;
                             std::int32_t c = 0;
                             comm.allReduce(&a, &a, 1, ncclSum, streams[0]);
                             comm.allReduce(&b, &b, 1, ncclSum, streams[1]);
                             Group group;
                             comm.allReduce(&a, &a, 1, ncclSum, streams[1]);
                             comm.allReduce(&b, &b, 1, ncclSum, streams[0]);
                             group.end();
                             comm.allReduce(&a, &c, 1, ncclSum, streams[0]);
                             for (Stream& stream : streams) stream.synchronize();
                             if (a != 4 || b != 4 || c != 8) throw std::runtime_error("wrong sum");
                           }),
            test::noErrors(2));
}

TEST(Streams, AGroupWithWorkWithoutAStreamIsDoneAtItsEnd) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream stream;
                             std::int32_t a = 1;
                             std::int32_t b = 1;
                             Group group;
                             comm.allReduce(&a, &a, 1, ncclSum, stream);
                             comm.allReduce(&b, &b, 1, ncclSum);
                             group.end();
                             if (a != 2 || b != 2)
                               throw std::runtime_error("not done at the end of the group");
                           }),
            test::noErrors(2));
}

TEST(Streams, GroupsCrossTheirStreams) {
  constexpr int kRanks = 3;
  const ncclUniqueId ids[] = {test::newId(), test::newId()};
  EXPECT_EQ(test::runThreads(kRanks,
                             [&](int rank) {
                               Comm comms[] = {Comm(kRanks, ids[0], rank), Comm(kRanks, ids[1], rank)};
                               Stream streams[2];
                               std::int32_t values[2] = {1, 1};
                               for (int i = 0; i < 12; ++i) {
                                 Group group;
                                 comms[0].allReduce(&values[0], &values[0], 1, i % 3 == 0 ? ncclSum : ncclMax,
                                                    streams[i % 2]);
                                 comms[1].allReduce(&values[1], &values[1], 1, i % 3 == 1 ? ncclSum : ncclMax,
                                                    streams[(i + 1) % 2]);
                                 group.end();
                               }
                               for (Stream& stream : streams) stream.synchronize();
                               if (values[0] != 81 || values[1] != 81) throw std::runtime_error("wrong sum");
                             }),
            test::noErrors(kRanks));
}

TEST(Streams, AnErrorIsOnTheStreamOnceAndOnTheCommunicatorForGood) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream stream;
                             std::vector<float> data(100);
                             const std::size_t count = comm.rank() == 0 ? 100 : 50;
                             comm.allReduce(data.data(), data.data(), count, ncclSum, stream);
                             EXPECT_EQ(tuttiStreamSynchronize(stream), ncclInvalidUsage);
                             EXPECT_EQ(tuttiStreamQuery(stream), ncclSuccess);
                             ncclResult_t state = ncclSuccess;
                             check(ncclCommGetAsyncError(comm.handle(), &state));
                             EXPECT_EQ(state, ncclInvalidUsage);
                             EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum,
                                                     comm.handle(), stream),
                                       ncclInvalidUsage);
                             EXPECT_SAYS("AllReduce #1 sum float ×50");
                           }),
            test::noErrors(2));
}

TEST(Streams, WorkBehindAFailureFailsWithoutRunning) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream stream;
                             std::vector<float> data(100);
                             float after = 7;
                             comm.allReduce(data.data(), data.data(), comm.rank() == 0 ? 100 : 50, ncclSum,
                                            stream);
                             // May be refused already, when the failure came first.
                             ncclAllReduce(&after, &after, 1, ncclFloat, ncclSum, comm.handle(), stream);
                             EXPECT_EQ(tuttiStreamSynchronize(stream), ncclInvalidUsage);
                             EXPECT_EQ(after, 7);
                           }),
            test::noErrors(2));
}

TEST(Streams, AbortCutsWhatIsQueued) {
  const ncclUniqueId id = test::newId();
  std::atomic<bool> may_leave{false};
  const auto errors = test::runThreads(2, [&](int rank) {
    Comm comm(2, id, rank);
    if (rank == 1) {
      while (!may_leave) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    Stream streams[2];
    float values[5] = {};
    for (int i = 0; i < 5; ++i) comm.allReduce(&values[i], &values[i], 1, ncclSum, streams[i % 2]);
    EXPECT_EQ(tuttiStreamQuery(streams[0]), ncclInProgress);
    comm.abort();
    for (Stream& stream : streams) {
      EXPECT_EQ(tuttiStreamSynchronize(stream), ncclRemoteError);
      EXPECT_SAYS("aborted the communicator");
    }
    may_leave = true;
  });
  EXPECT_EQ(errors, test::noErrors(2));
}

/// What a call returns that waits for its turn, behind work on a stream, while its communicator is aborted
/// `pause` later. ncclInvalidArgument where it came only then.
ncclResult_t resultOfAbortedWait(milliseconds pause) {
  const ncclUniqueId id = test::newId();
  std::atomic<bool> may_leave{false};
  std::atomic<ncclResult_t> result{ncclSuccess};
  const auto errors = test::runThreads(2, [&](int rank) {
    Comm comm(2, id, rank);
    if (rank == 1) {
      while (!may_leave) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    Stream stream;
    float value = 1;
    comm.allReduce(&value, &value, 1, ncclSum, stream);
    std::thread waiter([&, handle = comm.handle()] {
      float other = 1;
      result = ncclAllReduce(&other, &other, 1, ncclFloat, ncclSum, handle, nullptr);
    });
    std::this_thread::sleep_for(pause);
    comm.abort();
    waiter.join();
    may_leave = true;
  });
  EXPECT_EQ(errors, test::noErrors(2));
  return result;
}

TEST(Streams, AbortFreesACallThatWaitsForItsTurn) {
  ncclResult_t result = ncclInvalidArgument;
  for (milliseconds pause(50); result == ncclInvalidArgument && pause < milliseconds(10'000); pause *= 2)
    result = resultOfAbortedWait(pause);
  EXPECT_EQ(result, ncclRemoteError);
}

TEST(Streams, DestroyingACommunicatorWaitsForItsWork) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             Stream stream;
                             std::vector<float> data(100'000, 1);
                             if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(50));
                             for (int i = 0; i < 3; ++i)
                               comm.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
                             const ncclComm_t handle = comm.take();
                             check(ncclCommDestroy(handle));
                             if (data != std::vector<float>(100'000, 8))
                               throw std::runtime_error("cut short");
                           }),
            test::noErrors(2));
}

TEST(Streams, DestroyingAStreamAndFinalizingWaitForTheirWork) {
  EXPECT_EQ(test::runRanks(2,
                           [](Comm& comm) {
                             std::vector<float> data(100'000, 1);
                             if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(50));
                             {
                               Stream stream;
                               comm.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
                             }
                             if (data[99'999] != 2) throw std::runtime_error("the stream did not wait");
                             Stream stream;
                             comm.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
                             comm.finalize();
                             if (data[99'999] != 4) throw std::runtime_error("finalize did not wait");
                           }),
            test::noErrors(2));
}

}  // namespace
}  // namespace tutti
