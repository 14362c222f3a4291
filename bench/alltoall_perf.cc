// Time, bandwidth and correctness of an all-to-all: ncclSend to and ncclRecv from every rank, in one group.
#include "bench/in_group.h"
#include "bench/program.h"

int main(int argc, char** argv) {
  using namespace tutti::perf;
  return runProgram(argc, argv, kAllToAll, [](const Invocation& call) {
    int nranks = 0;
    ncclCommCount(call.comm, &nranks);
    const std::size_t block_bytes = call.count * elementBytes(call.type);
    return inGroup([&] {
      for (int peer = 0; peer < nranks; ++peer) {
        const std::size_t start = static_cast<std::size_t>(peer) * block_bytes;
        const auto* from = static_cast<const std::byte*>(call.send) + start;
        auto* to = static_cast<std::byte*>(call.recv) + start;
        const ncclResult_t sent = ncclSend(from, call.count, call.type, peer, call.comm, call.stream);
        if (sent != ncclSuccess) return sent;
        const ncclResult_t received = ncclRecv(to, call.count, call.type, peer, call.comm, call.stream);
        if (received != ncclSuccess) return received;
      }
      return ncclSuccess;
    });
  });
}
