// Communicators on GPUs that are made out of others, or ended while kernels run:
//   gpu_subgroup_program WHAT [threads N]
// One rank as a process, or N ranks as threads with a GPU each.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/runtime/gpu_device.h"

namespace {

using tutti::check;
using tutti::Comm;
using tutti::test::checkCuda;
using tutti::test::filled;
using tutti::test::GpuArray;
using tutti::test::GpuStreamOfTest;
using tutti::test::require;
using tutti::test::requireAll;

constexpr std::size_t kCount = 3000;

bool isLast(const Comm& comm) { return comm.rank() == comm.size() - 1; }

void conform(Comm& comm, std::uint64_t seed) { tutti::test::conform(comm, seed, 6, 5000); }

Comm splitOff(const Comm& comm, int color, int key, ncclConfig_t* config = nullptr) {
  ncclComm_t child = nullptr;
  check(ncclCommSplit(comm.handle(), color, key, &child, config));
  return Comm(child);
}

/// Halves of odd and even ranks in reverse order, which outlive their parent, and are split again.
void split(Comm& comm) {
  const int size = comm.size();
  const int rank = comm.rank();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  Comm half = splitOff(comm, rank % 2, -rank, &config);
  require(half.size() == (size + 1 - rank % 2) / 2, "the size of a half");
  require(half.rank() == half.size() - 1 - rank / 2, "the rank in a half");
  conform(half, 21);
  conform(comm, 22);
  ncclComm_t nothing = comm.handle();
  check(ncclCommSplit(comm.handle(), NCCL_SPLIT_NOCOLOR, 0, &nothing, nullptr));
  require(nothing == nullptr, "a communicator without a colour");
  check(ncclCommDestroy(comm.take()));
  conform(half, 23);
  Comm again = splitOff(half, 0, half.rank());
  check(ncclCommDestroy(half.take()));
  conform(again, 24);
}

/// The last one is left out, and does not take part.
void shrink(Comm& comm) {
  if (isLast(comm)) return;
  int last = comm.size() - 1;
  ncclComm_t child = nullptr;
  check(ncclCommShrink(comm.handle(), &last, 1, &child, nullptr, NCCL_SHRINK_DEFAULT));
  Comm rest(child);
  require(rest.size() == comm.size() - 1 && rest.rank() == comm.rank(), "size and rank without the last one");
  conform(rest, 31);
  check(ncclCommDestroy(comm.take()));
  conform(rest, 32);
}

/// A kernel that waits for the last rank, on its way: once it has run for a while.
void launchInVain(const Comm& comm, const GpuArray<float>& data, cudaStream_t stream) {
  check(ncclAllReduce(data.data(), data.data(), kCount, ncclFloat, ncclSum, comm.handle(), stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  require(cudaStreamQuery(stream) == cudaErrorNotReady, "the kernel does not wait");
}

/// The same where another rank may have ended it already.
void launchOrHear(const Comm& comm, const GpuArray<float>& data, cudaStream_t stream) {
  static_cast<void>(
      ncclAllReduce(data.data(), data.data(), kCount, ncclFloat, ncclSum, comm.handle(), stream));
}

void awaitFailure(const Comm& comm) {
  ncclResult_t state = ncclSuccess;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (state == ncclSuccess && std::chrono::steady_clock::now() < end) {
    check(ncclCommGetAsyncError(comm.handle(), &state));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  require(state != ncclSuccess, "nobody has noticed");
}

/// While their kernels wait for the last rank, the others go on without it; it is alive, or has died. Rank 0
/// is the first to end what waits, once it has seen its own kernel wait.
void shrinkAtWork(Comm& comm, bool last_dies) {
  const GpuStreamOfTest stream;
  const GpuArray<float> data(filled(kCount, 1.0F));
  comm.allReduce(data.data(), data.data(), kCount, ncclAvg, stream);
  stream.synchronize();
  if (isLast(comm) && last_dies) std::_Exit(0);
  if (isLast(comm)) return awaitFailure(comm);  // it is not to leave before the kernels wait for it
  if (last_dies || comm.rank() != 0) {
    launchOrHear(comm, data, stream);
    awaitFailure(comm);
  } else {
    launchInVain(comm, data, stream);
  }
  int last = comm.size() - 1;
  ncclComm_t child = nullptr;
  check(ncclCommShrink(comm.handle(), &last, 1, &child, nullptr, NCCL_SHRINK_ABORT));
  Comm rest(child);
  stream.synchronize();
  require(rest.size() == last && rest.rank() == comm.rank(), "size and rank without the last one");
  conform(rest, 41);
  data.set(filled(kCount, 2.0F));
  rest.allReduce(data.data(), data.data(), kCount, ncclSum, stream);
  stream.synchronize();
  requireAll(data, 2 * static_cast<float>(rest.size()), "on the stream that was waiting");
}

/// What waits ends on all ranks as soon as one revokes; then nothing but making others, and ending, is
/// possible.
void revoke(Comm& comm) {
  const GpuStreamOfTest stream;
  const GpuArray<float> data(filled(kCount, 1.0F));
  if (comm.rank() == 0) {
    launchInVain(comm, data, stream);
  } else {
    if (!isLast(comm)) launchOrHear(comm, data, stream);
    awaitFailure(comm);
  }
  check(ncclCommRevoke(comm.handle(), NCCL_REVOKE_DEFAULT));
  stream.synchronize();
  const ncclResult_t called =
      ncclAllReduce(data.data(), data.data(), kCount, ncclFloat, ncclSum, comm.handle(), stream);
  require(called == ncclInvalidUsage,
          "a call after ncclCommRevoke: " + std::string(ncclGetErrorString(called)));
  ncclResult_t state = ncclSystemError;
  check(ncclCommGetAsyncError(comm.handle(), &state));
  require(state == ncclSuccess, "ncclCommGetAsyncError after ncclCommRevoke");
  Comm again = splitOff(comm, 0, comm.rank());
  check(ncclCommDestroy(comm.take()));
  data.set(filled(kCount, 3.0F));
  again.allReduce(data.data(), data.data(), kCount, ncclSum, stream);
  stream.synchronize();
  requireAll(data, 3 * static_cast<float>(again.size()), "on the stream that was waiting");
  conform(again, 51);
}

/// The last one makes a sum where all others split.
void differ(Comm& comm) {
  const GpuStreamOfTest stream;
  const GpuArray<float> data(filled(kCount, 1.0F));
  comm.allReduce(data.data(), data.data(), kCount, ncclAvg, stream);
  stream.synchronize();
  if (!isLast(comm)) {
    splitOff(comm, 0, 0);
    return;
  }
  comm.allReduce(data.data(), data.data(), kCount, ncclSum, stream);
  stream.synchronize();
  comm.barrier();
}

void run(Comm& comm, const std::string& what) {
  if (what == "differ") return differ(comm);
  if (what == "split") return split(comm);
  if (what == "shrink") return shrink(comm);
  if (what == "shrink-at-work") return shrinkAtWork(comm, false);
  if (what == "shrink-after-death") return shrinkAtWork(comm, true);
  if (what == "revoke") return revoke(comm);
  throw std::runtime_error("what is " + what + "?");
}

void runThreads(const std::string& what, int nranks) {
  const ncclUniqueId id = tutti::test::newId();
  for (const std::string& error : tutti::test::runThreads(nranks, [&](int rank) {
         checkCuda(cudaSetDevice(rank), "cudaSetDevice");
         Comm comm(nranks, id, rank);
         run(comm, what);
       })) {
    require(error.empty(), error);
  }
}

void runProcess(const std::string& what) {
  int devices = 0;
  checkCuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  checkCuda(cudaSetDevice(std::atoi(std::getenv("TUTTI_RANK")) % devices), "cudaSetDevice");
  Comm comm = Comm::fromEnvironment();
  run(comm, what);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    tutti::test::useGpuMemory();
    require(argc == 2 || argc == 4, "usage: see the source");
    if (argc == 4) {
      runThreads(argv[1], std::atoi(argv[3]));
    } else {
      runProcess(argv[1]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
