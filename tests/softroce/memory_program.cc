// One rank of two, which does things with its memory: `memory_program WHAT [ARGUMENT]`, for rdma_memory_test.
// Values are of integers, so what is right needs no rounding.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/harness/conformance.h"
#include "tests/harness/ranks.h"
#include "tests/harness/transfers.h"
#include "tutti/tutti.h"

namespace {

using tutti::check;
using tutti::Comm;
using tutti::test::require;

/// Pages of their own, at an address of choice.
class Pages {
 public:
  explicit Pages(std::size_t bytes, void* at = nullptr) : bytes_(bytes) {
    const int fixed = at != nullptr ? MAP_FIXED_NOREPLACE : 0;
    memory_ = ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    require(memory_ != MAP_FAILED && (at == nullptr || memory_ == at), "mmap");
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(memory_, bytes_); }

  void* address() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  std::span<std::int32_t> values() const {
    return {static_cast<std::int32_t*>(memory_), bytes_ / sizeof(std::int32_t)};
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

class Registered {
 public:
  Registered(Comm& comm, const Pages& pages) : comm_(comm) {
    check(ncclCommRegister(comm.handle(), pages.address(), pages.bytes(), &handle_));
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  ~Registered() { ncclCommDeregister(comm_.handle(), handle_); }

 private:
  Comm& comm_;
  void* handle_ = nullptr;
};

std::int32_t valueOf(int rank, std::size_t i, int round) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(i) * 2654435761U +
                                   static_cast<std::uint32_t>(rank * 977 + round * 31));
}

/// What each rank's values add up to, as unsigned numbers, which wrap.
std::int32_t sumOf(int nranks, std::size_t i, int round) {
  std::uint32_t sum = 0;
  for (int rank = 0; rank < nranks; ++rank) sum += static_cast<std::uint32_t>(valueOf(rank, i, round));
  return static_cast<std::int32_t>(sum);
}

void fill(std::span<std::int32_t> values, int rank, int round) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = valueOf(rank, i, round);
}

void requireSum(std::span<const std::int32_t> values, int nranks, int round, const std::string& what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(values[i] == sumOf(nranks, i, round), what + ": wrong value " + std::to_string(i) + " of " +
                                                      std::to_string(values.size()) + ", round " +
                                                      std::to_string(round));
  }
}

/// All-reduce into another buffer and in place, and a transfer; around the results nothing is touched.
void reduceOnce(Comm& comm, std::span<std::int32_t> input, std::span<std::int32_t> output, std::size_t count,
                int round) {
  constexpr std::int32_t kUntouched = 0x5a5a5a5a;
  std::ranges::fill(output, kUntouched);
  const auto in = input.first(count);
  const auto out = output.subspan(1, count);
  const auto requireEdges = [&](const char* what) {
    require(output[0] == kUntouched && output[count + 1] == kUntouched,
            std::string(what) + ": touched memory beside " + std::to_string(count) + " values");
  };
  fill(in, comm.rank(), round);
  comm.allReduce(in.data(), out.data(), count, ncclInt32, ncclSum);
  requireSum(out, comm.size(), round, "all-reduce");
  requireEdges("all-reduce");
  comm.allReduce(in.data(), in.data(), count, ncclInt32, ncclSum);
  requireSum(in, comm.size(), round, "all-reduce in place");
  fill(in, comm.rank(), round);
  const int peer = 1 - comm.rank();
  tutti::Group group;
  comm.send(in.data(), count, peer);
  comm.receive(out.data(), count, peer);
  group.end();
  for (std::size_t i = 0; i < count; ++i)
    require(out[i] == valueOf(peer, i, round), "transfer: wrong value " + std::to_string(i));
  requireEdges("transfer");
}

/// Sizes of 0 to 1 MiB, odd ones among them, in registered memory and in other.
void sweep(Comm& comm, bool is_registered) {
  constexpr std::size_t kMost = std::size_t{1} << 18;
  const Pages input((kMost + 2) * sizeof(std::int32_t));
  const Pages output((kMost + 2) * sizeof(std::int32_t));
  std::optional<Registered> in;
  std::optional<Registered> out;
  if (is_registered) {
    in.emplace(comm, input);
    out.emplace(comm, output);
  }
  int round = 0;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{1009}, std::size_t{8192},
        std::size_t{32768}, std::size_t{32769}, std::size_t{99991}, kMost}) {
    reduceOnce(comm, input.values(), output.values(), count, ++round);
  }
}

/// One transfer of so many MiB.
void sendMuch(Comm& comm, std::size_t mib) {
  const Pages pages(mib << 20);
  const Registered registered(comm, pages);
  if (comm.rank() == 0) {
    fill(pages.values(), 0, 1);
    comm.send(pages.values().data(), pages.values().size(), 1);
  } else {
    comm.receive(pages.values().data(), pages.values().size(), 0);
    for (std::size_t i = 0; i < pages.values().size(); ++i)
      require(pages.values()[i] == valueOf(0, i, 1), "wrong value " + std::to_string(i));
  }
  comm.barrier();
}

/// Other memory at the same address, registered again each time.
void mapAgain(Comm& comm) {
  constexpr std::size_t kBytes = std::size_t{1} << 19;
  void* at = nullptr;
  for (int round = 0; round < 4; ++round) {
    const Pages pages(kBytes, at);
    const Registered registered(comm, pages);
    at = pages.address();
    // Twice: once the first time with a device, once when it knows the memory.
    for (int again = 0; again < 2; ++again) {
      fill(pages.values(), comm.rank(), round * 2 + again);
      comm.allReduce(pages.values().data(), pages.values().data(), pages.values().size(), ncclSum);
      requireSum(pages.values(), comm.size(), round * 2 + again, "mapped again");
    }
  }
}

/// Children that live on for a while, and end, while this rank writes what devices read.
void forkOften(Comm& comm) {
  const Pages pages(std::size_t{1} << 19);
  const Registered registered(comm, pages);
  for (int round = 0; round < 5; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50 * round));
      std::_Exit(0);
    }
    fill(pages.values(), comm.rank(), round);
    comm.allReduce(pages.values().data(), pages.values().data(), pages.values().size(), ncclSum);
    requireSum(pages.values(), comm.size(), round, "with a child");
    int status = 0;
    require(::waitpid(child, &status, 0) == child && status == 0, "the child failed");
  }
}

void run(const std::string& what, const std::string& argument) {
  tuttiLaunch_t launch;
  check(tuttiLaunchFromEnvironment(&launch));
  Comm comm(launch.nranks, launch.id, launch.rank);
  if (what == "sweep") {
    sweep(comm, false);
    sweep(comm, true);
  } else if (what == "much") {
    sendMuch(comm, std::stoul(argument));
  } else if (what == "again") {
    mapAgain(comm);
  } else if (what == "fork") {
    forkOften(comm);
  } else if (what == "conform") {
    tutti::test::conform(comm, std::stoull(argument), 20, 30'000);
  } else {
    throw std::runtime_error("what?");
  }
  std::printf("altered %llu\n", static_cast<unsigned long long>(comm.statistics().altered_slots));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "0");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
