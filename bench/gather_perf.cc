// Time, bandwidth and correctness of ncclGather.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kGather, [](const Invocation& call) {
    return ncclGather(call.send, call.recv, call.count, call.type, call.root, call.comm, call.stream);
  });
}
