// Wrong arguments: the code, words that name function and argument, and a communicator that goes on working.
#include "tests/nccl_conformance/arguments.h"

#include <gtest/gtest.h>

namespace conformance {
namespace {

/// A communicator that is destroyed; NULL where one may not look at such.
ncclComm_t deadComm() {
  ncclComm_t comm = nullptr;
  if (!isTutti()) return comm;
  CHECK_NCCL(ncclCommInitRank(&comm, 1, newId(), 0));
  CHECK_NCCL(ncclCommDestroy(comm));
  return comm;
}

Props makeProps(const Rank& rank, const Buffer& data, const Buffer& other, ncclComm_t dead) {
  Props props{data.at(), other.at(), dead, ncclSum, ncclSum};
  double two = 2;
  for (ncclRedOp_t* op : {&props.of_double, &props.destroyed_op}) {
    CHECK_NCCL(ncclRedOpCreatePreMulSum(op, &two, ncclDouble, ncclScalarHostImmediate, rank.comm));
  }
  CHECK_NCCL(ncclRedOpDestroy(props.destroyed_op, rank.comm));
  return props;
}

std::string textOf(const WrongCall& row) { return row.function + ": " + row.argument + " " + row.value; }

/// The words are NCCL's own affair; Tutti's name function and argument.
void expectWords(const WrongCall& row) {
  if (!isTutti()) return;
  const std::string words = ncclGetLastError(nullptr);
  EXPECT_NE(words.find(row.function), std::string::npos) << textOf(row) << "\nsays: " << words;
  EXPECT_NE(words.find(row.argument), std::string::npos) << textOf(row) << "\nsays: " << words;
}

enum class In : char { nothing, group };

void refuses(const std::vector<WrongCall>& rows, In in) {
  const ncclComm_t dead = deadComm();  // before: CUDA may wait for all GPUs when memory is freed
  runRanks(std::min(2, mostRanks()), [&](const Rank& rank) {
    const Buffer data(4096);
    const Buffer other(4096);
    const Props props = makeProps(rank, data, other, dead);
    for (const WrongCall& row : rows) {
      if (row.by == By::tutti && !isTutti()) continue;
      if (in == In::group) CHECK_NCCL(ncclGroupStart());
      EXPECT_EQ(row.call(rank, props), row.code) << textOf(row) << ": " << ncclGetLastError(nullptr);
      expectWords(row);
      if (in == In::group) {
        EXPECT_EQ(ncclGroupEnd(), row.code) << textOf(row) << ", in a group";
      }
      ncclResult_t state = ncclInternalError;
      CHECK_NCCL(ncclCommGetAsyncError(rank.comm, &state));
      EXPECT_EQ(state, ncclSuccess) << textOf(row);
      checkUsable(rank);  // together: no rank is in the next call before all have looked at the words
    }
  });
}

TEST(Arguments, OfOperations) { refuses(wrongOperations(std::min(2, mostRanks())), In::nothing); }
TEST(Arguments, OfOperationsInGroups) { refuses(wrongOperations(std::min(2, mostRanks())), In::group); }
TEST(Arguments, OfOtherCalls) { refuses(wrongCalls(), In::nothing); }

TEST(Arguments, StreamsOfNobody) {
  const Stream stream;
  if (stream != nullptr) GTEST_SKIP() << "CUDA looks at streams by itself";
  runRanks(2, [](const Rank& rank) {
    int nothing = 0;
    const Buffer data(64);
    EXPECT_EQ(ncclAllReduce(data.at(), data.at(), 1, ncclInt32, ncclSum, rank.comm,
                            reinterpret_cast<cudaStream_t>(&nothing)),
              ncclInvalidArgument);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("stream"), std::string::npos);
    checkUsable(rank);
  });
}

}  // namespace
}  // namespace conformance
