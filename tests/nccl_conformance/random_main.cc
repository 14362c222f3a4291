// nccl_random: random programs of NCCL calls, every result compared with a sequential one.
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl_conformance/memory.h"
#include "tests/nccl_conformance/random_rank.h"
#include "tests/nccl_conformance/ranks.h"

namespace conformance {
namespace {

constexpr const char* kUsage =
    "usage: nccl_random [--seed N] [--runs N] [--seconds N] [--ranks N] [--id-file PATH]\n"
    "  --seed N     the first seed (1); each run has the next\n"
    "  --runs N     how many (1), at least\n"
    "  --seconds N  goes on until they have passed\n"
    "  --ranks N    2 to 8; drawn from the seed otherwise\n"
    "  --id-file P  this process is one rank: RANK of WORLD_SIZE, which meet by the file P, where none is "
    "yet\n";

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t runs = 1;
  long seconds = 0;
  int ranks = 0;
  std::string id_file{};
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(kUsage);
    const std::string value = argv[i + 1];
    if (name == "--seed")
      options.seed = std::stoull(value);
    else if (name == "--runs")
      options.runs = std::stoull(value);
    else if (name == "--seconds")
      options.seconds = std::stol(value);
    else if (name == "--ranks")
      options.ranks = std::stoi(value);
    else if (name == "--id-file")
      options.id_file = value;
    else
      throw std::invalid_argument(kUsage);
  }
  return options;
}

/// Whether the library splits communicators.
bool splits() {
  ncclComm_t comm = nullptr;
  ncclComm_t child = nullptr;
  CHECK_NCCL(ncclCommInitRank(&comm, 1, newId(), 0));
  const bool result = ncclCommSplit(comm, 0, 0, &child, nullptr) == ncclSuccess;
  if (result) CHECK_NCCL(ncclCommDestroy(child));
  CHECK_NCCL(ncclCommDestroy(comm));
  return result;
}

std::vector<ncclUniqueId> idsFor(const RandomProgram& program) {
  std::vector<ncclUniqueId> ids;
  for (std::size_t i = 0; i < program.members.size(); ++i) ids.push_back(newId());
  return ids;
}

std::size_t countOf(const RandomProgram& program) {
  std::size_t count = 0;
  for (const Step& step : program.steps) count += step.operations.size();
  return count;
}

/// All ranks as threads. What the ranks said, where something was wrong.
std::string runInThreads(const RandomProgram& program) {
  const auto expected = expectedArenas(program);
  const auto ids = idsFor(program);
  std::mutex mutex;
  std::string errors;
  std::barrier meeting(program.nranks);
  const auto be = [&](int rank) {
    try {
      takePart(program, expected, rank, ids, [&] { meeting.arrive_and_wait(); });
    } catch (const std::exception& error) {
      meeting.arrive_and_drop();
      const std::scoped_lock lock(mutex);
      errors += "rank " + std::to_string(rank) + ": " + error.what() + "\n";
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(program.nranks));
  for (int rank = 0; rank < program.nranks; ++rank) threads.emplace_back(be, rank);
  for (std::thread& thread : threads) thread.join();
  return errors;
}

int numberFrom(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) throw std::invalid_argument(std::string(name) + " is not set");
  return std::atoi(text);
}

/// Rank 0 makes an id and puts it into the file, for which the others wait.
ncclUniqueId idByFile(int rank, const std::string& path) {
  ncclUniqueId id;
  if (rank == 0) {
    id = newId();
    FILE* file = std::fopen((path + ".part").c_str(), "wb");
    const bool is_written = file != nullptr && std::fwrite(&id, sizeof(id), 1, file) == 1;
    if (file != nullptr) std::fclose(file);
    if (!is_written || std::rename((path + ".part").c_str(), path.c_str()) != 0)
      throw std::runtime_error("cannot write " + path);
    return id;
  }
  FILE* file = nullptr;
  for (int tries = 0; file == nullptr && tries < 6000; ++tries) {
    file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) ::usleep(10'000);
  }
  if (file == nullptr) throw std::runtime_error("no file " + path);
  const bool is_read = std::fread(&id, sizeof(id), 1, file) == 1;
  std::fclose(file);
  if (!is_read) throw std::runtime_error("cannot read " + path);
  return id;
}

/// One rank, as a process, of all programs; ids go round by a communicator that lives as long.
class RankProcess {
 public:
  explicit RankProcess(const std::string& id_file)
      : rank(numberFrom("RANK")), nranks(numberFrom("WORLD_SIZE")) {
    takeDevice(rank);
    CHECK_NCCL(ncclCommInitRank(&comm_, nranks, idByFile(rank, id_file), rank));
  }
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess() { ncclCommDestroy(comm_); }

  std::string run(const RandomProgram& program) {
    try {
      takePart(program, expectedArenas(program), rank, share(program), [] {});
      return "";
    } catch (const std::exception& error) {
      return "rank " + std::to_string(rank) + ": " + error.what() + "\n";
    }
  }

  const int rank;
  const int nranks;

 private:
  std::vector<ncclUniqueId> share(const RandomProgram& program) {
    auto ids = rank == 0 ? idsFor(program) : std::vector<ncclUniqueId>(program.members.size());
    const std::size_t bytes = ids.size() * sizeof(ncclUniqueId);
    const Stream stream;
    const Buffer buffer(bytes);
    copyIn(buffer.at(), ids.data(), bytes);
    CHECK_NCCL(ncclBroadcast(buffer.at(), buffer.at(), bytes, ncclUint8, 0, comm_, stream));
    stream.synchronize();
    copyOut(ids.data(), buffer.at(), bytes);
    return ids;
  }

  ncclComm_t comm_ = nullptr;
};

int rankCount(const Options& options, std::uint64_t seed) {
  const int most = std::min(8, mostRanks());
  if (options.ranks > most) throw std::invalid_argument("--ranks: at most " + std::to_string(most) + " here");
  return options.ranks > 0 || most < 2 ? std::max(1, options.ranks)
                                       : 2 + static_cast<int>(seed % static_cast<std::uint64_t>(most - 1));
}

template <class Run>
int runAll(const Options& options, const Run& run) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  const bool can_split = splits();
  std::size_t calls = 0;
  std::uint64_t seed = options.seed;
  for (; seed < options.seed + options.runs || std::chrono::steady_clock::now() < end; ++seed) {
    const int nranks = rankCount(options, seed);
    const RandomProgram program = drawProgram(seed, nranks, can_split);
    std::printf("seed %llu: %d ranks, %zu steps, %zu communicators\n", static_cast<unsigned long long>(seed),
                nranks, program.steps.size(), program.members.size());
    std::fflush(stdout);
    if (const std::string errors = run(program); !errors.empty()) {
      std::fprintf(stderr, "nccl_random --seed %llu --ranks %d: wrong\n%s",
                   static_cast<unsigned long long>(seed), nranks, errors.c_str());
      return 1;
    }
    calls += countOf(program);
  }
  std::printf("%llu programs, %zu operations%s: all right\n",
              static_cast<unsigned long long>(seed - options.seed), calls, can_split ? "" : ", no splits");
  return 0;
}

int run(Options options) {
  if (options.id_file.empty()) return runAll(options, runInThreads);
  RankProcess process(options.id_file);
  options.seconds = 0;  // the ranks' clocks differ
  options.ranks = process.nranks;
  return runAll(options, [&](const RandomProgram& program) { return process.run(program); });
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  try {
    return conformance::run(conformance::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
