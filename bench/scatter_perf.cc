// Time, bandwidth and correctness of ncclScatter.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kScatter, [](const Invocation& call) {
    return ncclScatter(call.send, call.recv, call.count, call.type, call.root, call.comm, call.stream);
  });
}
