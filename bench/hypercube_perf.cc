// Time, bandwidth and correctness of an all-gather by sends and receives along the edges of a hypercube.
//
// In step k rank r exchanges what it has, 2^k blocks, with rank r ^ 2^k; after log2(n) steps each has all:
//
//   4 ranks:   step 0   0 <-> 1, 2 <-> 3, a block      step 1   0 <-> 2, 1 <-> 3, two blocks
#include "bench/in_group.h"
#include "bench/program.h"

namespace {

using tutti::perf::Invocation;

ncclResult_t sendAndReceive(const Invocation& call, const void* send, void* recv, std::size_t count,
                            int peer) {
  const ncclResult_t sent = ncclSend(send, count, call.type, peer, call.comm, call.stream);
  return sent != ncclSuccess ? sent : ncclRecv(recv, count, call.type, peer, call.comm, call.stream);
}

ncclResult_t gatherAll(const Invocation& call) {
  int rank = 0;
  int nranks = 0;
  ncclCommUserRank(call.comm, &rank);
  ncclCommCount(call.comm, &nranks);
  const std::size_t block_bytes = call.count * tutti::perf::elementBytes(call.type);
  auto* all = static_cast<std::byte*>(call.recv);
  const auto block = [&](int of_rank) { return all + static_cast<std::size_t>(of_rank) * block_bytes; };
  if (block(rank) != call.send) {  // a rank's own block, as data of the stream
    const ncclResult_t copied =
        tutti::perf::inGroup([&] { return sendAndReceive(call, call.send, block(rank), call.count, rank); });
    if (copied != ncclSuccess) return copied;
  }
  for (int step = 1; step < nranks; step *= 2) {
    const int mine = rank & ~(step - 1);  // the first of the blocks that this rank has
    const ncclResult_t exchanged = tutti::perf::inGroup([&] {
      return sendAndReceive(call, block(mine), block(mine ^ step),
                            call.count * static_cast<std::size_t>(step), rank ^ step);
    });
    if (exchanged != ncclSuccess) return exchanged;
  }
  return ncclSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  return tutti::perf::runProgram(argc, argv, tutti::perf::kHypercube, gatherAll);
}
