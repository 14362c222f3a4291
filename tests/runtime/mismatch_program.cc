// One rank that makes, in communicator after communicator, the same call as the others in all but one of its
// arguments: those of one rank differ, which is another one from case to case. Says on standard output
// "found MS" for each, and what was not as it must be. With an argument: so many ranks, as threads.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/descriptor.h"
#include "tests/harness/conformance.h"
#include "tests/harness/ranks.h"
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
  Descriptor other;  ///< what one rank does
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

/// One rank sends so many bytes to the next, which waits for others. Or it waits for a transfer while the
/// rest are in a collective.
std::vector<Case> transferCases() {
  const auto make = [](std::uint64_t sent, std::uint64_t received) {
    return Case{tutti::transferDescriptor(received), tutti::transferDescriptor(sent)};
  };
  const Descriptor sum{.type = DataType::int32, .count = 1'000};
  return {make(1, 2),        make(2, 1),        make(300'000, 299'999),
          make(10, 300'000), make(300'000, 10), {sum, tutti::transferDescriptor(77)}};
}

/// In which collective of its communicator a case differs: the first is a barrier.
constexpr std::uint64_t kNumber = 2;

std::string textFor(const Descriptor& d) {
  return tutti::isTransfer(d) ? std::to_string(d.count) + " bytes" : describe(d, kNumber);
}

/// One rank's part in one case.
class Part {
 public:
  Part(Comm& comm, const Case& c, int other)
      : comm_(comm), case_(c), other_(other), next_((other + 1) % comm.size()) {}

  void check() {
    const std::string name = textFor(case_.usual) + " against " + textFor(case_.other) + " of rank " +
                             std::to_string(other_) + ": ";
    auto begin = steady_clock::now();
    try {
      comm_.barrier();  // which may hear of what its neighbour met in the next call
      begin = steady_clock::now();
      call();
      std::printf("%snothing was found\n", name.c_str());
    } catch (const tutti::Error& error) {
      if (!isRight(error)) std::printf("%s%d: %s\n", name.c_str(), int{error.code()}, error.what());
    } catch (const std::exception& error) {
      std::printf("%s%s\n", name.c_str(), error.what());
    }
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin);
    std::printf("found %d\n", static_cast<int>(took.count()));
  }

 private:
  /// The call, then one that finds what the first could not: who took the data of a root that it agrees with
  /// is done.
  void call() {
    const bool is_other = comm_.rank() == other_;
    const Descriptor& d = is_other ? case_.other : case_.usual;
    if (!tutti::isTransfer(d)) {
      tutti::test::checkOperation(comm_, d, 1, {});
    } else {
      std::vector<std::uint8_t> data(d.count);
      const bool all_transfer = tutti::isTransfer(case_.usual);
      if (is_other && all_transfer) comm_.send(data.data(), d.count, next_);
      if (is_other && !all_transfer) comm_.receive(data.data(), d.count, next_);
      if (comm_.rank() == next_) comm_.receive(data.data(), d.count, other_);
    }
    comm_.barrier();
  }

  /// Names both sides' arguments, of collectives with their number, and the rank.
  bool isRight(const tutti::Error& error) const {
    const std::string text = error.what();
    const auto says = [&](const std::string& words) { return text.find(words) != std::string::npos; };
    // Of a collective that a transfer met on another host, the number may not be known.
    const bool is_mixed = tutti::isTransfer(case_.usual) != tutti::isTransfer(case_.other);
    const bool names_usual = says(textFor(case_.usual)) || (is_mixed && says(describe(case_.usual)));
    return error.code() == ncclInvalidUsage && names_usual && says(textFor(case_.other)) &&
           says("rank " + std::to_string(other_) + " (pid ");
  }

  Comm& comm_;
  const Case& case_;
  int other_;
  int next_;
};

/// Ids for communicators to come, from rank 0.
std::vector<ncclUniqueId> shareIds(Comm& comm, std::size_t count) {
  std::vector<ncclUniqueId> ids(count);
  for (ncclUniqueId& id : ids) {
    if (comm.rank() == 0) tutti::check(ncclGetUniqueId(&id));
  }
  comm.broadcast(ids.data(), ids.data(), count * sizeof(ncclUniqueId), ncclUint8, 0);
  return ids;
}

std::vector<Case> allCases() {
  std::vector<Case> cases = collectiveCases();
  for (const Case& c : transferCases()) cases.push_back(c);
  return cases;
}

void checkAll(const std::vector<Case>& cases, int nranks, int rank, const std::vector<ncclUniqueId>& ids) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Comm comm(nranks, ids[i], rank);
    Part(comm, cases[i], static_cast<int>(i % static_cast<std::size_t>(nranks))).check();
  }
}

void runAsProcess() {
  tuttiLaunch_t launch;
  tutti::check(tuttiLaunchFromEnvironment(&launch));
  const std::vector<Case> cases = allCases();
  std::vector<ncclUniqueId> ids;
  {
    Comm comm(launch.nranks, launch.id, launch.rank);
    ids = shareIds(comm, cases.size());
  }
  checkAll(cases, launch.nranks, launch.rank, ids);
}

void runAsThreads(int nranks) {
  const std::vector<Case> cases = allCases();
  std::vector<ncclUniqueId> ids;
  for (std::size_t i = 0; i < cases.size(); ++i) ids.push_back(tutti::test::newId());
  const auto errors = tutti::test::runThreads(nranks, [&](int rank) { checkAll(cases, nranks, rank, ids); });
  for (const std::string& error : errors) {
    if (!error.empty()) throw std::runtime_error(error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    argc > 1 ? runAsThreads(std::stoi(argv[1])) : runAsProcess();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
