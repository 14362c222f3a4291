// One rank as a process, for processes_test and others: `rank_program WHAT [ARG]`. Prints "ready" once it has
// joined; errors go to standard error with exit status 1.
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

/// Rank 0 is away for a while after each call, in which the others need what it sent last, and its credits.
void beAway(Comm& comm, bool computes) {
  std::vector<float> data(3'000'000, 1.0F);
  for (int round = 0; round < 4; ++round) {
    comm.allReduce(data.data(), data.data(), data.size(), ncclMax);
    if (comm.rank() == 0) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      if (!computes) std::this_thread::sleep_until(end);
      while (std::chrono::steady_clock::now() < end) {
      }
    } else if (comm.rank() == comm.size() - 1) {
      comm.send(data.data(), 1'000'000, 1);
    } else if (comm.rank() == 1) {
      comm.receive(data.data(), 1'000'000, comm.size() - 1);
    }
  }
}

/// All-reduces of several sizes, checked, until rank 0's time is over.
void reduceFor(Comm& comm, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  constexpr std::size_t kCounts[] = {1, 1'000, 400'000};
  std::vector<std::int64_t> data;
  for (std::int64_t round = 0, goes_on = 1; goes_on != 0; ++round) {
    data.resize(kCounts[round % 3]);
    const auto value = [&](std::int64_t rank, std::size_t i) {
      return (rank + 1) * (static_cast<std::int64_t>(i) + round);
    };
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(comm.rank(), i);
    comm.allReduce(data.data(), data.data(), data.size(), ncclSum);
    const std::int64_t shares = comm.size() * (comm.size() + 1) / 2;
    for (std::size_t i = 0; i < data.size(); ++i) {
      tutti::test::require(data[i] == shares * value(0, i),
                           "round " + std::to_string(round) + ": wrong value " + std::to_string(i));
    }
    goes_on = std::chrono::steady_clock::now() < end ? 1 : 0;
    comm.broadcast(&goes_on, &goes_on, 1, ncclInt64, 0);
  }
}

/// Communicators one after the other and two at once, each from what the launcher says now.
void joinAgain() {
  const auto join = [] { return Comm::fromEnvironment(); };
  for (int round = 0; round < 3; ++round) {
    Comm comm = join();
    tutti::test::conform(comm, 21, 5, 1'000);
  }
  Comm first = join();
  Comm second = join();
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    tutti::test::conform(first, seed, 5, 1'000);
    tutti::test::conform(second, seed, 5, 1'000);
  }
}

/// The last rank calls something else than the others.
void differ(Comm& comm, const std::string& how) {
  std::vector<std::int32_t> data(2000);
  const bool is_other = comm.rank() == comm.size() - 1;
  comm.barrier();
  if (is_other && how == "collective") {
    comm.broadcast(data.data(), data.data(), 1000, ncclInt32, 0);
  } else if (how == "root") {
    comm.reduce(data.data(), data.data(), 1000, ncclInt32, ncclSum, is_other ? 1 : 0);
  } else {
    comm.allReduce(data.data(), data.data(), is_other && how == "count" ? 999 : 1000,
                   is_other && how == "type" ? ncclFloat : ncclInt32,
                   is_other && how == "op" ? ncclMax : ncclSum);
  }
  comm.barrier();
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
  if (what == "again") return joinAgain();
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
  if (what == "reduce") return reduceFor(comm, std::chrono::milliseconds(std::stoi(argument)));
  if (what == "away") return beAway(comm, argument == "compute");
  if (what == "differ") return differ(comm, argument);
  if (what == "absent" && comm.rank() == std::stoi(argument)) ::pause();
  if (what == "exit-early" && comm.rank() == std::stoi(argument)) std::_Exit(0);  // without ncclCommDestroy
  if (what == "exit-after") {
    comm.barrier();
    // Has completed the only operation: may go at once, whatever the others still do in it.
    std::vector<std::int32_t> data(1000, comm.rank() == 0 ? 42 : 0);
    if (comm.rank() == comm.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    comm.broadcast(data.data(), data.data(), data.size(), ncclInt32, 0);
    const int status = data.back() == 42 ? 0 : 1;
    if (argument == "exit") std::exit(status);  // what other hosts need of this rank is sent
    std::_Exit(status);
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
