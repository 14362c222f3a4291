// One rank that makes, in communicator after communicator, the same call as the others in all but one of its
// arguments: the last rank's differ. Says on standard output "found MS" for each, and what was not as it must
// be.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/descriptor.h"
#include "tests/harness/conformance.h"
#include "tutti/tutti.h"

namespace {

using std::chrono::steady_clock;
using tutti::Collective;
using tutti::Comm;
using tutti::DataType;
using tutti::Descriptor;
using tutti::RedOp;

struct Case {
  Descriptor usual;
  Descriptor other;  ///< what the last rank does
};

/// For each collective, small and large, each argument that it has.
std::vector<Case> collectiveCases() {
  std::vector<Case> cases;
  for (int number = 0; number < tutti::kCollectiveCount; ++number) {
    const auto collective = static_cast<Collective>(number);
    for (const std::uint64_t count : {10, 60'000}) {
      const Descriptor usual{.collective = collective, .type = DataType::int32, .count = count};
      const auto add = [&](auto member, auto value) {
        Descriptor other = usual;
        other.*member = value;
        cases.push_back({usual, other});
      };
      add(&Descriptor::count, count - 1);
      add(&Descriptor::type, DataType::float32);
      if (isReduction(collective)) add(&Descriptor::op, RedOp::max);
      if (hasRoot(collective)) add(&Descriptor::root, 1);
      add(&Descriptor::collective,
          collective == Collective::all_reduce ? Collective::all_gather : Collective::all_reduce);
    }
  }
  return cases;
}

/// The last rank sends so many bytes to rank 0, which waits for others.
std::vector<Case> transferCases() {
  const auto make = [](std::uint64_t sent, std::uint64_t received) {
    return Case{tutti::transferDescriptor(received), tutti::transferDescriptor(sent)};
  };
  return {make(1, 2), make(2, 1), make(300'000, 299'999), make(10, 300'000), make(300'000, 10)};
}

/// The call, then one that finds what the first could not: who took the data of a root that it agrees with is
/// done.
void callOf(Comm& comm, const Case& c) {
  const bool is_other = comm.rank() == comm.size() - 1;
  const Descriptor& d = is_other ? c.other : c.usual;
  if (tutti::isTransfer(d)) {
    std::vector<std::uint8_t> data(d.count);
    if (is_other) comm.send(data.data(), d.count, 0);
    if (comm.rank() == 0) comm.receive(data.data(), d.count, comm.size() - 1);
  } else {
    tutti::test::checkOperation(comm, d, 1, {});
  }
  comm.barrier();
}

std::string textFor(const Case& c, const Descriptor& d) {
  return tutti::isTransfer(c.usual) ? std::to_string(d.count) + " bytes" : describe(d);
}

const std::string kBarrier = describe(Descriptor{.type = DataType::int32, .count = 1});

/// Who has sent all, or received all, that it must in a broadcast, gather or scatter can be in the barrier
/// when the others notice; and on another host it is not known what it did before.
bool mayBeDone(const Case& c) {
  const auto involvesTheRootOnly = [](const Descriptor& d) {
    return hasRoot(d.collective) && !isReduction(d.collective);
  };
  return involvesTheRootOnly(c.usual) || involvesTheRootOnly(c.other);
}

void check(Comm& comm, const Case& c) {
  const std::string name = textFor(c, c.usual) + " against " + textFor(c, c.other) + ": ";
  auto begin = steady_clock::now();
  try {
    comm.barrier();  // which may hear of what its neighbour met in the next call
    begin = steady_clock::now();
    callOf(comm, c);
    std::printf("%snothing was found\n", name.c_str());
  } catch (const tutti::Error& error) {
    const std::string text = error.what();
    const std::string other = "rank " + std::to_string(comm.size() - 1) + " (pid ";
    const auto says = [&](const std::string& words) { return text.find(words) != std::string::npos; };
    const bool names_usual = says(textFor(c, c.usual)) || (mayBeDone(c) && says(kBarrier));
    const bool names_other = says(textFor(c, c.other)) || (mayBeDone(c) && says(kBarrier));
    if (!names_usual || !names_other || !says(other)) std::printf("%s%s\n", name.c_str(), text.c_str());
  } catch (const std::exception& error) {
    std::printf("%s%s\n", name.c_str(), error.what());
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
  std::printf("found %d\n", static_cast<int>(took.count()));
}

/// Ids for communicators to come, from rank 0.
std::vector<ncclUniqueId> shareIds(Comm& comm, std::size_t count) {
  std::vector<ncclUniqueId> ids(count);
  for (ncclUniqueId& id : ids) {
    if (comm.rank() == 0) tutti::check(ncclGetUniqueId(&id));
  }
  comm.broadcast(ids.data(), ids.data(), count * sizeof(ncclUniqueId), ncclUint8, 0);
  return ids;
}

void run() {
  tuttiLaunch_t launch;
  tutti::check(tuttiLaunchFromEnvironment(&launch));
  std::vector<Case> cases = collectiveCases();
  for (const Case& c : transferCases()) cases.push_back(c);
  std::vector<ncclUniqueId> ids;
  {
    Comm comm(launch.nranks, launch.id, launch.rank);
    ids = shareIds(comm, cases.size());
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Comm comm(launch.nranks, ids[i], launch.rank);
    check(comm, cases[i]);
  }
}

}  // namespace

int main() {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
