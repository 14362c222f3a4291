// Time, bandwidth and correctness of ncclReduceScatter.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kReduceScatter, [](const Invocation& call) {
    return ncclReduceScatter(call.send, call.recv, call.count, call.type, call.op, call.comm, call.stream);
  });
}
