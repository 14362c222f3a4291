// Time, bandwidth and correctness of ncclSend to the next rank and ncclRecv from the previous one, in one
// group.
#include "bench/in_group.h"
#include "bench/program.h"

int main(int argc, char** argv) {
  using namespace tutti::perf;
  return runProgram(argc, argv, kSendRecv, [](const Invocation& call) {
    int rank = 0;
    int nranks = 0;
    ncclCommUserRank(call.comm, &rank);
    ncclCommCount(call.comm, &nranks);
    return inGroup([&] {
      const ncclResult_t sent =
          ncclSend(call.send, call.count, call.type, (rank + 1) % nranks, call.comm, call.stream);
      if (sent != ncclSuccess) return sent;
      return ncclRecv(call.recv, call.count, call.type, (rank + nranks - 1) % nranks, call.comm, call.stream);
    });
  });
}
