// One rank's bootstrap as a process, for bootstrap_processes_test: `bootstrap_program ID_FILE NRANKS RANK`.
// Prints the most sockets that the process had at once, and how long it took from joining to the end.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/process.h"
#include "tests/harness/sockets.h"

namespace {

using namespace tutti;  // NOLINT(google-build-using-namespace): a program of its own

ncclUniqueId readId(const char* path) {
  ncclUniqueId id;
  std::ifstream(path, std::ios::binary).read(id.internal, sizeof(id.internal));
  return id;
}

void run(const UniqueId& id, int nranks, int rank) {
  using Clock = std::chrono::steady_clock;
  test::SocketCount sockets(std::chrono::milliseconds(100));
  const auto start = Clock::now();
  Bootstrap bootstrap(id, nranks, rank, NetworkSettings{}, start + std::chrono::seconds(100));
  sockets.look();  // all channels are open
  const auto all = bootstrap.allGather(rank);
  for (int peer = 0; peer < nranks; ++peer) {
    if (all[static_cast<std::size_t>(peer)] != peer) throw std::runtime_error("wrong value");
  }
  bootstrap.barrier();
  bootstrap.leave();
  std::printf("sockets %d seconds %.3f\n", sockets.most(),
              std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::runtime_error("usage: bootstrap_program ID_FILE NRANKS RANK");
    Process::instance();  // starts libsodium
    run(decode(readId(argv[1])), std::stoi(argv[2]), std::stoi(argv[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
