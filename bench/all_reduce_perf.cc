// Time, bandwidth and correctness of ncclAllReduce.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kAllReduce, [](const Invocation& call) {
    return ncclAllReduce(call.send, call.recv, call.count, call.type, call.op, call.comm, call.stream);
  });
}
