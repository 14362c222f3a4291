// Time, bandwidth and correctness of ncclReduce.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kReduce, [](const Invocation& call) {
    return ncclReduce(call.send, call.recv, call.count, call.type, call.op, call.root, call.comm,
                      call.stream);
  });
}
