// Time, bandwidth and correctness of ncclAllGather.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kAllGather, [](const Invocation& call) {
    return ncclAllGather(call.send, call.recv, call.count, call.type, call.comm, call.stream);
  });
}
