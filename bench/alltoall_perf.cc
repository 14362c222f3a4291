// Time, bandwidth and correctness of ncclAlltoAll.
#include "bench/program.h"

int main(int argc, char** argv) {
  using tutti::perf::Invocation;
  return tutti::perf::runProgram(argc, argv, tutti::perf::kAllToAll, [](const Invocation& call) {
    return ncclAlltoAll(call.send, call.recv, call.count, call.type, call.comm, call.stream);
  });
}
