// cudaDeviceReset while a communicator is on the GPU.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/runtime/gpu_device.h"
#include "tests/runtime/gpu_scenarios.h"

namespace tutti::test {
namespace {

constexpr std::size_t kCount = 5000;

/// Links and lists of transfers are in use. With two ranks, or one.
void useAll(Comm& comm) {
  const GpuArray<float> data(filled(kCount, 1.0F));
  const GpuArray<float> received(kCount);
  const int right = (comm.rank() + 1) % comm.size();
  const int left = (comm.rank() + comm.size() - 1) % comm.size();
  for (int round = 0; round < 3; ++round) {
    comm.allReduce(data.data(), data.data(), kCount, ncclAvg);
    Group group;
    comm.send(data.data(), kCount, right);
    comm.receive(received.data(), kCount, left);
    group.end();
  }
  requireAll(data, 1, "averages");
  requireAll(received, 1, "what was received");
  if (comm.size() == 1) return;
  // The last rank hears that the other one's kernels have ended: they may use its memory no more.
  if (comm.rank() == 0) {
    comm.send(data.data(), 1, comm.size() - 1);
  } else {
    comm.receive(received.data(), 1, 0);
  }
  checkCuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void requireTold(ncclResult_t result, const std::string& call) {
  const std::string said = ncclGetLastError(nullptr);
  require(result == ncclUnhandledCudaError, call + ": " + ncclGetErrorString(result) + ": " + said);
  require(said.find("cudaDeviceReset has ended all that this process had on GPU") != std::string::npos,
          call + " says: " + said);
}

/// The call that finds the reset.
void find(Comm& comm, const std::string& call, void* stale) {
  ncclComm_t made = nullptr;
  void* handle = nullptr;
  int other = 0;
  if (call == "allReduce") {
    return requireTold(ncclAllReduce(stale, stale, kCount, ncclFloat, ncclSum, comm.handle(), nullptr), call);
  }
  if (call == "send") {
    return requireTold(ncclSend(stale, kCount, ncclFloat, other, comm.handle(), nullptr), call);
  }
  if (call == "register") {
    return requireTold(ncclCommRegister(comm.handle(), stale, 1000, &handle), call);
  }
  if (call == "split") {
    return requireTold(ncclCommSplit(comm.handle(), 0, 0, &made, nullptr), call);
  }
  if (call == "shrink") {
    return requireTold(ncclCommShrink(comm.handle(), &other, 1, &made, nullptr, NCCL_SHRINK_DEFAULT), call);
  }
  if (call == "asyncError") {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm.handle(), &state));
    return requireTold(state, call);
  }
  if (call == "finalize") return requireTold(ncclCommFinalize(comm.handle()), call);
  if (call == "destroy") return requireTold(ncclCommDestroy(comm.take()), call);
  if (call == "abort") return check(ncclCommAbort(comm.take()));
  throw std::runtime_error("what is " + call + "?");
}

/// Until the other ranks learn of it. A kernel of theirs would meet memory that is gone.
std::string awaitRemoteError(Comm& comm) {
  ncclResult_t state = ncclSuccess;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (state == ncclSuccess && std::chrono::steady_clock::now() < end) {
    check(ncclCommGetAsyncError(comm.handle(), &state));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::string said = ncclGetLastError(nullptr);
  require(state != ncclSuccess, "nobody noticed");
  return said;
}

/// On the last rank; the program goes on with its GPU, and its new memory stays its own.
void resetAndFind(Comm& comm, const std::string& call) {
  void* of_the_library = nullptr;
  check(ncclMemAlloc(&of_the_library, kCount));
  void* stale = nullptr;
  checkCuda(cudaMalloc(&stale, kCount * sizeof(float)), "cudaMalloc");
  void* handle = nullptr;
  check(ncclCommRegister(comm.handle(), stale, kCount, &handle));
  checkCuda(cudaDeviceReset(), "cudaDeviceReset");
  std::vector<GpuArray<float>> fresh;
  for (int i = 0; i < 20; ++i) fresh.emplace_back(filled(1 << 16, static_cast<float>(i)));
  find(comm, call, call == "register" ? fresh[0].data() : stale);
  if (ncclComm_t left = comm.take(); left != nullptr) {
    requireTold(ncclAllReduce(fresh[0].data(), fresh[0].data(), kCount, ncclFloat, ncclSum, left, nullptr),
                "the next call");
    check(ncclCommDeregister(left, handle));
    check(ncclCommDestroy(left));
  }
  expectRefusal(ncclMemFree(of_the_library), "was freed already");
  void* again = nullptr;
  check(ncclMemAlloc(&again, kCount));
  checkCuda(cudaMemset(again, 1, kCount), "cudaMemset");
  check(ncclMemFree(again));
  for (std::size_t i = 0; i < fresh.size(); ++i)
    requireAll(fresh[i], static_cast<float>(i), "memory of the program");
}

}  // namespace

void resetDevice(Comm& comm, const std::string& call) {
  useAll(comm);
  const int last = comm.size() - 1;
  if (comm.rank() == last) return resetAndFind(comm, call);
  const std::string said = awaitRemoteError(comm);
  require(said.find("rank " + std::to_string(last) + " (pid ") != std::string::npos, said);
}

void resetDeviceInThreads() {
  for (const char* call :
       {"allReduce", "send", "register", "split", "shrink", "asyncError", "finalize", "destroy", "abort"}) {
    const ncclUniqueId id = newId();
    for (const std::string& error : runThreads(2, [&](int rank) {
           checkCuda(cudaSetDevice(rank), "cudaSetDevice");
           Comm comm(2, id, rank);
           useAll(comm);
           // What was said last is the process's.
           if (rank == 0) return static_cast<void>(awaitRemoteError(comm));
           resetAndFind(comm, call);
         })) {
      require(error.empty(), std::string(call) + ": " + error);
    }
  }
}

void resetWhileOthersLook() {
  for (int round = 0; round < 20; ++round) {
    checkCuda(cudaSetDevice(0), "cudaSetDevice");
    Comm comm(1, newId(), 0);
    useAll(comm);
    std::atomic<bool> is_over = false;
    std::thread looks([&] {
      ncclResult_t state = ncclSuccess;
      while (!is_over) check(ncclCommGetAsyncError(comm.handle(), &state));
    });
    // The Watcher comes at any time.
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
    checkCuda(cudaDeviceReset(), "cudaDeviceReset");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    is_over = true;
    looks.join();
    find(comm, "asyncError", nullptr);
  }
}

}  // namespace tutti::test
