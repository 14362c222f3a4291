// One rank as a process, for processes_test: `rank_program WHAT [ARG]`. Prints "ready" once it has joined;
// errors go to standard error with exit status 1.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/conformance.h"
#include "tests/harness/ranks.h"
#include "tests/harness/transfers.h"
#include "tutti/tutti.h"

namespace {

using tutti::Comm;

void loopUntilKilled(Comm& comm) {
  std::vector<float> data(100'000);
  for (;;) comm.allReduce(data.data(), data.data(), data.size(), ncclMax);
}

/// All-to-alls of many shapes, among collectives.
void exchange(Comm& comm) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    tutti::test::allToAllV({&comm}, seed);
    if (seed % 5 == 0) tutti::test::conform(comm, seed, 2, 10'000);
  }
}

/// Rank 0 waits for `count` values of the last rank; `leave` is what that one does instead of sending all of
/// them.
template <class Leave>
void receiveInVain(Comm& comm, std::size_t count, const Leave& leave) {
  comm.barrier();
  std::vector<std::int32_t> data(count);
  if (comm.rank() == comm.size() - 1) return leave(data);
  if (comm.rank() == 0) comm.receive(data.data(), count, comm.size() - 1);
}

/// `threads` ranks in this process, of as many processes as the launcher started.
void conformInThreads(const tuttiLaunch_t& launch, int threads) {
  const auto errors = tutti::test::runThreads(threads, [&](int thread) {
    Comm comm(launch.nranks * threads, launch.id, launch.rank * threads + thread);
    tutti::test::conform(comm, 77, 60, 30'000);
  });
  for (const auto& error : errors) {
    if (!error.empty()) throw std::runtime_error(error);
  }
}

void run(const std::string& what, const std::string& argument) {
  tuttiLaunch_t launch;
  tutti::check(tuttiLaunchFromEnvironment(&launch));
  if (what == "threads") return conformInThreads(launch, std::stoi(argument));
  Comm comm(launch.nranks, launch.id, launch.rank);
  std::puts("ready");
  std::fflush(stdout);
  if (what == "conform") return tutti::test::conform(comm, std::stoull(argument), 100, 60'000);
  if (what == "exchange") return exchange(comm);
  if (what == "receive-from-dead") return receiveInVain(comm, 10, [](auto&) { std::_Exit(0); });
  if (what == "receive-from-absent") return receiveInVain(comm, 10, [](auto&) { ::pause(); });
  if (what == "send-and-exit") {
    // What was sent is there, whatever became of the sender.
    return receiveInVain(comm, 10, [&](auto& data) {
      comm.send(data.data(), data.size(), 0);
      std::_Exit(0);
    });
  }
  if (what == "loop") return loopUntilKilled(comm);
  if (what == "absent" && comm.rank() == std::stoi(argument)) ::pause();
  if (what == "exit-early" && comm.rank() == std::stoi(argument)) std::_Exit(0);  // without ncclCommDestroy
  if (what == "exit-after") {
    comm.barrier();
    // Has completed the only operation: may go at once, whatever the others still do in it.
    std::vector<std::int32_t> data(1000, comm.rank() == 0 ? 42 : 0);
    if (comm.rank() == comm.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    comm.broadcast(data.data(), data.data(), data.size(), ncclInt32, 0);
    std::_Exit(data.back() == 42 ? 0 : 1);
  }
  comm.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "barrier", argc > 2 ? argv[2] : "0");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
