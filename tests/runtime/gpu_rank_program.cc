// One rank, or several as threads or in one thread, on GPUs: gpu_rank_program WHAT [ARGUMENT].
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/transfers.h"
#include "tests/runtime/gpu_break.h"
#include "tests/runtime/gpu_device.h"
#include "tests/runtime/gpu_scenarios.h"

namespace {

using tutti::Comm;
using tutti::test::checkCuda;
using tutti::test::expectRefusal;
using tutti::test::filled;
using tutti::test::GpuArray;
using tutti::test::GpuStreamOfTest;
using tutti::test::require;
using tutti::test::requireAll;
using tutti::test::sumOfRanks;

/// Sends and receives of every pair, also with itself, in one group; several per pair.
void exchange(Comm& comm) {
  const int nranks = comm.size();
  const int self = comm.rank();
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{70'000}}) {
    std::vector<GpuArray<std::int32_t>> sent;
    std::vector<GpuArray<std::int32_t>> received;
    for (int peer = 0; peer < nranks; ++peer) {
      for (int number = 0; number < 2; ++number) {
        sent.emplace_back(tutti::test::message(self, peer, number, count));
        received.emplace_back(count);
      }
    }
    tutti::Group group;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const int peer = static_cast<int>(i / 2);
      comm.send(sent[i].data(), count, peer);
      comm.receive(received[i].data(), count, peer);
    }
    group.end();
    for (std::size_t i = 0; i < received.size(); ++i) {
      const int peer = static_cast<int>(i / 2);
      require(received[i].get() == tutti::test::message(peer, self, static_cast<int>(i % 2), count),
              "wrong data from rank " + std::to_string(peer));
    }
  }
}

/// Work on two streams in turn is in order, whatever the streams; each operation reads what the one before
/// wrote.
void useStreams(Comm& comm) {
  const GpuStreamOfTest streams[2];
  const GpuArray<float> data(filled(5000, 1.0F));
  float expected = 1;
  for (int round = 0; round < 12; ++round) {
    comm.allReduce(data.data(), data.data(), data.size(), ncclSum, streams[round % 2]);
    expected *= static_cast<float>(comm.size());
    if (expected > 1e6F) break;
  }
  for (const auto& stream : streams) stream.synchronize();
  requireAll(data, expected, "two streams");
}

/// What cannot work is refused with the address and what it is, and the communicator goes on.
void refuse(Comm& comm) {
  std::vector<float> host(100);
  const GpuArray<float> good(filled(100, 1.0F));
  const auto attempt = [&](const void* send, void* recv) {
    return ncclAllReduce(send, recv, 100, ncclFloat, ncclSum, comm.handle(), nullptr);
  };
  char address[32];
  std::snprintf(address, sizeof(address), "%p", static_cast<void*>(host.data()));
  expectRefusal(attempt(host.data(), good.data()), "sendbuff " + std::string(address) + " is host memory");
  expectRefusal(attempt(good.data(), host.data()), "recvbuff " + std::string(address) + " is host memory");
  int device = 0;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  int devices = 0;
  checkCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  void* freed = nullptr;
  checkCuda(cudaMalloc(&freed, 4096), "cudaMalloc");
  checkCuda(cudaFree(freed), "cudaFree");
  expectRefusal(attempt(freed, good.data()), "was freed");
  if (devices > 1) {
    const int other = (device + 1) % devices;
    checkCuda(cudaSetDevice(other), "cudaSetDevice");
    const GpuArray<float> elsewhere(100);
    const GpuStreamOfTest stream_elsewhere;
    checkCuda(cudaSetDevice(device), "cudaSetDevice");
    expectRefusal(
        ncclAllReduce(good.data(), good.data(), 100, ncclFloat, ncclSum, comm.handle(), stream_elsewhere),
        "the stream belongs to GPU " + std::to_string(other));
    expectRefusal(attempt(elsewhere.data(), good.data()),
                  "is memory of GPU " + std::to_string(other) +
                      ", but this communicator works on memory of GPU " + std::to_string(device));
  }
  try {
    comm.barrier();
    require(false, "barrier() on a GPU");
  } catch (const tutti::Error& error) {
    require(error.code() == ncclInvalidUsage, error.what());
    require(std::string(error.what()).starts_with("barrier() serves communicators on host memory only"),
            error.what());
  }
  void* handle = nullptr;
  expectRefusal(ncclCommRegister(comm.handle(), good.data(), SIZE_MAX, &handle),
                "go beyond the end of the address space");
  void* memory = nullptr;
  require(ncclMemAlloc(&memory, SIZE_MAX) == ncclUnhandledCudaError && memory == nullptr,
          "ncclMemAlloc(SIZE_MAX)");
  const std::string said = ncclGetLastError(nullptr);
  require(said.find("for ncclMemAlloc: out of memory") != std::string::npos, said);
  require(said.find("Ask for less") != std::string::npos, said);
  ncclRedOp_t scaled{};
  tutti::check(ncclRedOpCreatePreMulSum(&scaled, host.data(), ncclFloat, ncclScalarDevice, comm.handle()));
  expectRefusal(ncclAllReduce(good.data(), good.data(), 100, ncclFloat, scaled, comm.handle(), nullptr),
                "scalar " + std::string(address) + " is host memory");
  tutti::check(ncclRedOpDestroy(scaled, comm.handle()));
  comm.allReduce(good.data(), good.data(), 100, ncclSum);
  requireAll(good, static_cast<float>(comm.size()), "after refusals");
  int now = -1;
  checkCuda(cudaGetDevice(&now), "cudaGetDevice");
  require(now == device, "the current device was changed");
}

/// A communicator on host memory, in a process that uses CUDA.
void refuseGpuMemory(Comm& comm) {
  const GpuArray<float> gpu(100);
  std::vector<float> host(100, 1.0F);
  expectRefusal(ncclAllReduce(gpu.data(), host.data(), 100, ncclFloat, ncclSum, comm.handle(), nullptr),
                "is memory of GPU 0, but this communicator works on host memory");
  comm.allReduce(host.data(), host.data(), 100, ncclSum);
  require(host[99] == static_cast<float>(comm.size()), "wrong sum");
}

/// Calls visit(collective and operation) for each that there is, with a type.
template <class Visit>
void forOperations(tutti::DataType type, const Visit& visit) {
  for (int collective = 0; collective < tutti::kCollectiveCount; ++collective) {
    tutti::Descriptor d;
    d.collective = static_cast<tutti::Collective>(collective);
    d.type = type;
    const int ops = tutti::isReduction(d.collective) ? tutti::kAllRedOpCount : 1;
    for (int op = 0; op < ops; ++op) {
      d.op = static_cast<tutti::RedOp>(op);
      visit(d);
    }
  }
}

/// The bits of results, for comparison with those of the host's executor: FNV-1a.
void sayBits(Comm& comm, bool on_gpu) {
  if (on_gpu) tutti::test::useGpuMemory();
  std::uint64_t hash = 14695981039346656037ULL;
  std::uint64_t seed = 100;
  const auto addResult = [&](tutti::Descriptor d) {
    d.count = 1013;
    ++seed;
    const tutti::test::Placement place{.in_place = seed % 2 == 0, .shift = seed % 16};
    for (const std::byte b : tutti::test::checkOperation(comm, d, seed, place)) {
      hash = (hash ^ static_cast<std::uint64_t>(b)) * 1099511628211ULL;
    }
  };
  for (int type = 0; type < tutti::kDataTypeCount; ++type) {
    forOperations(static_cast<tutti::DataType>(type), addResult);
  }
  std::printf("bits %016llx\n", static_cast<unsigned long long>(hash));
}

void allReduceOnce(Comm& comm, std::size_t count) {
  const GpuArray<float> data(filled(count, 1.0F));
  comm.allReduce(data.data(), data.data(), count, ncclSum);
  // A failed operation leaves no error of CUDA: its kernel has ended, and whoever asks is told at once.
  checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  ncclResult_t state = ncclSuccess;
  tutti::check(ncclCommGetAsyncError(comm.handle(), &state));
  if (state != ncclSuccess) throw std::runtime_error(ncclGetLastError(comm.handle()));
  requireAll(data, static_cast<float>(comm.size()), "neither a result nor an error");
}

/// What ncclCommGetAsyncError tells, as soon as that is a failure; ncclSuccess when it is none for long.
ncclResult_t awaitFailure(const Comm& comm) {
  ncclResult_t state = ncclSuccess;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(50);
  while (state == ncclSuccess && std::chrono::steady_clock::now() < end) {
    tutti::check(ncclCommGetAsyncError(comm.handle(), &state));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return state;
}

/// A kernel of the program breaks the last rank's GPU before it enters the operation that the others wait in.
void breakLast(Comm& comm) {
  if (comm.rank() != comm.size() - 1) return allReduceOnce(comm, 1000);
  tutti::test::breakGpu();
  const ncclResult_t state = awaitFailure(comm);
  throw std::runtime_error(state == ncclSuccess ? "nobody noticed" : ncclGetLastError(comm.handle()));
}

/// Once ncclCommGetAsyncError has told of a rank that is gone, calls do, too, at once.
void callWhenOneIsGone(Comm& comm) {
  const GpuArray<float> data(filled(100, 1.0F));
  const ncclResult_t state = awaitFailure(comm);
  const std::string known = ncclGetLastError(comm.handle());
  require(state == ncclRemoteError, "nobody noticed: " + known);
  const ncclResult_t called =
      ncclAllReduce(data.data(), data.data(), 100, ncclFloat, ncclSum, comm.handle(), nullptr);
  require(called == ncclRemoteError, "the call returned " + std::string(ncclGetErrorString(called)));
  require(known == ncclGetLastError(comm.handle()),
          "the call said: " + std::string(ncclGetLastError(nullptr)));
}

void loop(Comm& comm) {
  const GpuArray<float> data(10'000);
  for (;;) {
    comm.allReduce(data.data(), data.data(), data.size(), ncclMax);
    checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
}

/// Another thread aborts while a kernel waits for a rank that never comes.
void abortWhileWaiting(Comm& comm) {
  if (comm.rank() == comm.size() - 1) {
    awaitFailure(comm);  // by then they have aborted
    return;
  }
  const GpuArray<float> data(1000);
  comm.allReduce(data.data(), data.data(), data.size(), ncclMax);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  tutti::check(ncclCommAbort(comm.take()));
  checkCuda(cudaDeviceSynchronize(), "after abort");
}

/// One thread drives several GPUs.
void driveAll(int count) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(count));
  tutti::check(ncclCommInitAll(comms.data(), count, nullptr));
  std::vector<GpuArray<float>> arrays;
  for (int device = 0; device < count; ++device) {
    checkCuda(cudaSetDevice(device), "cudaSetDevice");
    arrays.emplace_back(filled(20'000, static_cast<float>(device + 1)));
    int of = -1;
    tutti::check(ncclCommCuDevice(comms[static_cast<std::size_t>(device)], &of));
    require(of == device, "ncclCommCuDevice");
  }
  checkCuda(cudaSetDevice(0), "cudaSetDevice");
  tutti::check(ncclGroupStart());
  for (std::size_t i = 0; i < comms.size(); ++i) {
    tutti::check(
        ncclAllReduce(arrays[i].data(), arrays[i].data(), 20'000, ncclFloat, ncclSum, comms[i], nullptr));
  }
  tutti::check(ncclGroupEnd());
  for (int device = 0; device < count; ++device) {
    checkCuda(cudaSetDevice(device), "cudaSetDevice");
    requireAll(arrays[static_cast<std::size_t>(device)], sumOfRanks(count), "one thread, several GPUs");
  }
  for (ncclComm_t comm : comms) tutti::check(ncclCommDestroy(comm));
}

/// Threads of the library do not use the first GPU, which CUDA gives to a thread that chose none; the
/// program's thread keeps its own.
void leaveFirstGpu() {
  const ncclUniqueId id = tutti::test::newId();
  ncclComm_t comms[2] = {};
  tutti::check(ncclGroupStart());
  for (int rank = 0; rank < 2; ++rank) {
    checkCuda(cudaSetDevice(rank + 1), "cudaSetDevice");
    tutti::check(ncclCommInitRank(&comms[rank], 2, id, rank));
  }
  tutti::check(ncclGroupEnd());
  {
    checkCuda(cudaSetDevice(1), "cudaSetDevice");
    const GpuArray<float> first(filled(1000, 1.0F));
    checkCuda(cudaSetDevice(2), "cudaSetDevice");
    const GpuArray<float> second(filled(1000, 2.0F));
    tutti::Group group;
    tutti::check(ncclAllReduce(first.data(), first.data(), 1000, ncclFloat, ncclSum, comms[0], nullptr));
    tutti::check(ncclAllReduce(second.data(), second.data(), 1000, ncclFloat, ncclSum, comms[1], nullptr));
    group.end();
    requireAll(second, 3, "two GPUs");
    // The Watcher looks every tenth of a second.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  for (ncclComm_t comm : comms) tutti::check(ncclCommDestroy(comm));
  int device = -1;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  require(device == 2, "the current device is " + std::to_string(device));
  require(tutti::test::isUsed(2) && tutti::test::isUsed(1), "the emulator does not tell which GPUs are used");
  require(!tutti::test::isUsed(0), "GPU 0 was used");
}

/// Ranks as threads, where there is no GPU.
void runThreadsOnHost() {
  for (const std::string& error : tutti::test::runRanks(3, [](Comm& comm) {
         float value = 1;
         comm.allReduce(&value, &value, 1, ncclSum);
         require(value == 3, "wrong sum");
       })) {
    require(error.empty(), error);
  }
}

/// Ranks as threads, each with a GPU.
void runThreads(int nranks) {
  tutti::test::useGpuMemory();
  int devices = 0;
  checkCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const ncclUniqueId id = tutti::test::newId();
  for (const std::string& error : tutti::test::runThreads(nranks, [&](int rank) {
         checkCuda(cudaSetDevice(rank % devices), "cudaSetDevice");
         Comm comm(nranks, id, rank);
         tutti::test::conform(comm, 31, 12, 20'000);
         exchange(comm);
       })) {
    require(error.empty(), error);
  }
}

void run(const std::string& what, const std::string& argument) {
  if (what == "drive-all") return driveAll(std::stoi(argument));
  if (what == "threads") return runThreads(std::stoi(argument));
  if (what == "threads-on-host") return runThreadsOnHost();
  if (what == "leave-first") return leaveFirstGpu();
  if (what == "reset-threads") return tutti::test::resetDeviceInThreads();
  if (what == "reset-looking") return tutti::test::resetWhileOthersLook();
  if (what == "destroy-beside") return tutti::test::destroyBesideAKernel();
  if (what == "many") return tutti::test::makeAndDestroyMany(std::stoi(argument));
  if (what == "destroy-queued") return tutti::test::destroyWhileQueued();
  int devices = 0;
  // Also makes the process use CUDA. Where there is no GPU, the communicator says so.
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  const char* rank = std::getenv("TUTTI_RANK");
  require(rank != nullptr, "TUTTI_RANK is not set");
  if (has_gpu) checkCuda(cudaSetDevice(std::stoi(rank) % devices), "cudaSetDevice");
  Comm comm = Comm::fromEnvironment();
  std::puts("ready");
  std::fflush(stdout);
  const bool is_last = comm.rank() == comm.size() - 1;
  if (what == "conform") {
    tutti::test::useGpuMemory();
    return tutti::test::conform(comm, std::stoull(argument), 25, 30'000);
  }
  if (what == "exchange") return exchange(comm);
  if (what == "streams") return useStreams(comm);
  if (what == "replay") return tutti::test::replay(comm, std::stoi(argument));
  if (what == "replay-alone") return tutti::test::replayAlone(comm, std::stoi(argument));
  if (what == "groups") return tutti::test::useGroups(comm);
  if (what == "refuse") return refuse(comm);
  if (what == "refuse-gpu-memory") return refuseGpuMemory(comm);
  if (what == "register") return tutti::test::registerBuffers(comm);
  if (what == "free-registered") return tutti::test::freeRegistered(comm);
  if (what == "bits") return sayBits(comm, argument == "gpu");
  if (what == "once") return allReduceOnce(comm, std::stoul(argument));
  if (what == "gone" && is_last) ::_exit(0);
  if (what == "gone") return callWhenOneIsGone(comm);
  if (what == "differ") return allReduceOnce(comm, is_last ? 50 : 100);
  if (what == "absent" && is_last) ::pause();
  if (what == "absent") return allReduceOnce(comm, 100);
  if (what == "loop") return loop(comm);
  if (what == "break") return breakLast(comm);
  if (what == "fall-idle") {
    for (int i = std::stoi(argument); i > 0; --i) allReduceOnce(comm, 2);
    if (comm.rank() != 0) ::pause();
    return;
  }
  if (what == "reset") return tutti::test::resetDevice(comm, argument);
  if (what == "abort") return abortWhileWaiting(comm);
  throw std::runtime_error("what is " + what + "?");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
