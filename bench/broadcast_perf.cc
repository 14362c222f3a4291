// Time, bandwidth and correctness of ncclBroadcast.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kBroadcast, [](const Invocation& call) {
    return ncclBroadcast(call.send, call.recv, call.count, call.type, call.root, call.comm, call.stream);
  });
}
