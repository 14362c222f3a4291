// One rank as a process, for processes_test and others: `rank_program WHAT [ARG]`. Prints "ready" once it has
// joined; errors go to standard error with exit status 1.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
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

/// The last rank dies once the others have told it that they have what it owed them: what lies in its rings
/// towards other hosts would die with it. `receiver` waits for more; the others end, mostly before it dies.
void receiveFromDead(Comm& comm, int receiver) {
  comm.barrier();
  const int last = comm.size() - 1;
  std::vector<std::int32_t> data(10);
  if (comm.rank() == last) {
    for (int rank = 0; rank < last; ++rank) comm.receive(data.data(), 1, rank);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::_Exit(0);
  }
  comm.send(data.data(), 1, last);
  if (comm.rank() == receiver) comm.receive(data.data(), data.size(), last);
}

/// Rank 0, over which news would go, destroys its communicator first; the last rank sends after a while.
void receiveFromLate(Comm& comm) {
  comm.barrier();
  std::vector<std::int32_t> data(10);
  const int last = comm.size() - 1;
  if (comm.rank() == last) {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    comm.send(data.data(), data.size(), 1);
  }
  if (comm.rank() == 1) comm.receive(data.data(), data.size(), last);
}

/// The last rank sends much and leaves at once, while rank 0 has not begun to receive it.
void receiveFromWhoLeft(Comm& comm) {
  std::vector<std::int32_t> data(1 << 20);
  comm.barrier();
  if (comm.rank() == comm.size() - 1) {
    data = tutti::test::message(comm.rank(), 0, 5, data.size());
    comm.send(data.data(), data.size(), 0);
  } else if (comm.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    comm.receive(data.data(), data.size(), comm.size() - 1);
    tutti::test::require(data == tutti::test::message(comm.size() - 1, 0, 5, data.size()), "wrong data");
  }
}

/// Rank 0 sends to the last rank, which has left, and ends. The others wait for that.
void sendToWhoLeft(Comm& comm) {
  std::vector<std::int32_t> data(1000);
  if (comm.rank() == comm.size() - 1) return;
  if (comm.rank() != 0) {
    const ncclResult_t result =
        ncclRecv(data.data(), data.size(), ncclInt32, 0, comm.handle(), nullptr);  // until it has left
    return tutti::test::require(result == ncclRemoteError, "received");
  }
  ncclComm_t child = nullptr;
  const ncclResult_t split = ncclCommSplit(comm.handle(), 0, 0, &child, nullptr);  // until one has left
  tutti::test::require(split == ncclRemoteError, "split");
  comm.send(data.data(), data.size(), comm.size() - 1);
  tutti::check(ncclCommDestroy(comm.take()));
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

/// The last rank goes, in the way of `how`, while the others are in no operation: what they hear of it.
void watch(Comm& comm, const std::string& how) {
  const int last = comm.size() - 1;
  std::int32_t word = 0;
  if (comm.rank() == last) {
    // From here on the others only watch.
    for (int rank = 0; rank < last; ++rank) comm.receive(&word, 1, rank);
    std::puts("watched");
    std::fflush(stdout);
    if (how == "killed") ::pause();
    if (how == "abort") tutti::check(ncclCommAbort(comm.take()));
    return;
  }
  comm.send(&word, 1, last);
  const ncclResult_t expected = how == "leave" ? ncclSuccess : ncclRemoteError;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(how == "leave" ? 1 : 30);
  ncclResult_t heard = ncclSuccess;
  while (heard == ncclSuccess && std::chrono::steady_clock::now() < end) {
    tutti::check(ncclCommGetAsyncError(comm.handle(), &heard));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (heard != expected) throw std::runtime_error("heard: " + std::string(ncclGetErrorString(heard)));
}

/// What one call of `body` moved, by this rank; after a first call.
template <class Body>
void sayMoved(Comm& comm, const char* name, std::size_t count, const Body& body) {
  body();
  const tuttiStatistics_t before = comm.statistics();
  body();
  const tuttiStatistics_t after = comm.statistics();
  const auto payload = [](const tuttiStatistics_t& s) {
    return s.payload_slot_bytes + s.payload_read_bytes + s.payload_written_bytes;
  };
  std::printf("moved %s %zu %llu %llu\n", name, count,
              static_cast<unsigned long long>(payload(after) - payload(before)),
              static_cast<unsigned long long>(after.payload_network_bytes - before.payload_network_bytes));
}

/// Operations of several sizes, for statistics_test: floats, per rank where ranks have blocks.
void sayAllMoved(Comm& comm) {
  const int last = comm.size() - 1;
  // Multiples of 64 per rank, so that all blocks are equal.
  for (const std::size_t grains : {1U, 15U, 1250U}) {
    const std::size_t count = grains * 64 * static_cast<std::size_t>(comm.size());
    std::vector<float> data(count);
    std::vector<float> blocks(count * static_cast<std::size_t>(comm.size()));
    sayMoved(comm, "all_reduce", count,
             [&] { comm.allReduce(data.data(), data.data(), count, ncclFloat, ncclSum); });
    sayMoved(comm, "all_gather", count, [&] { comm.allGather(data.data(), blocks.data(), count); });
    sayMoved(comm, "reduce_scatter", count,
             [&] { comm.reduceScatter(blocks.data(), data.data(), count, ncclFloat, ncclSum); });
    sayMoved(comm, "broadcast", count,
             [&] { comm.broadcast(data.data(), data.data(), count, ncclFloat, 0); });
    sayMoved(comm, "reduce", count,
             [&] { comm.reduce(data.data(), data.data(), count, ncclFloat, ncclSum, 0); });
    sayMoved(comm, "send", count, [&] {
      if (comm.rank() == 0) comm.send(data.data(), count, last);
      if (comm.rank() == last) comm.receive(data.data(), count, 0);
    });
  }
}

/// One rank is stopped as soon as a call has returned, by itself; others may still need of it what it sent
/// last.
void stopAfterCalls(Comm& comm, int who) {
  for (std::uint64_t round = 0; round < 2; ++round) {
    const auto collective = round % 2 == 0 ? tutti::Collective::all_reduce : tutti::Collective::all_gather;
    tutti::test::checkOperation(comm, {.collective = collective, .count = 400'000}, round, {});
    if (comm.rank() == who) ::raise(SIGSTOP);
  }
  tutti::test::allToAllV({&comm}, 7);
}

/// Rank 0 stops itself, and each other rank waits to receive from the one before it; the last has waited
/// longest.
void waitInAChain(Comm& comm) {
  comm.barrier();
  std::int32_t value = 0;
  if (comm.rank() != comm.size() - 1) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  if (comm.rank() == 0) ::raise(SIGSTOP);
  comm.receive(&value, 1, comm.rank() - 1);
}

/// All-reduces of several sizes, checked, until rank 0 has enough. Prints "reducing" after one of each.
void reduceUntil(Comm& comm, const std::function<bool()>& is_enough) {
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
    if (round == 2) {
      std::puts("reducing");
      std::fflush(stdout);
    }
    goes_on = is_enough() ? 0 : 1;
    comm.broadcast(&goes_on, &goes_on, 1, ncclInt64, 0);
  }
}

void reduceFor(Comm& comm, std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  reduceUntil(comm, [end] { return std::chrono::steady_clock::now() >= end; });
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
  if (what == "conform-briefly") return tutti::test::conform(comm, std::stoull(argument), 10, 20'000);
  if (what == "stop-after-calls") return stopAfterCalls(comm, std::stoi(argument));
  if (what == "chain") return waitInAChain(comm);
  if (what == "exchange") return exchange(comm);
  if (what == "receive-from-dead") return receiveFromDead(comm, 0);
  if (what == "receive-from-absent") return receiveInVain(comm, 10, [](auto&) { ::pause(); });
  if (what == "send-and-exit") {
    // What was sent is there, whatever became of the sender.
    return receiveInVain(comm, 10, [&](auto& data) {
      comm.send(data.data(), data.size(), 0);
      std::_Exit(0);
    });
  }
  if (what == "loop") return loopUntilKilled(comm);
  if (what == "root-left") {
    // Rank 0, over which news would go, destroys its communicator first; then the last rank dies.
    return receiveFromDead(comm, 1);
  }
  if (what == "root-left-late") return receiveFromLate(comm);
  if (what == "watch") return watch(comm, argument);
  if (what == "moved") return sayAllMoved(comm);
  if (what == "receive-from-left") return receiveFromWhoLeft(comm);
  if (what == "open-group") return tutti::check(ncclGroupStart());
  if (what == "send-to-left") return sendToWhoLeft(comm);
  if (what == "reduce") return reduceFor(comm, std::chrono::milliseconds(std::stoi(argument)));
  if (what == "reduce-until")  // there is a file
    return reduceUntil(comm, [&argument] { return ::access(argument.c_str(), F_OK) == 0; });
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
