// What programs ask about the machine before they start, and what they may conclude: properties, attributes,
// memory, occupancy, peers, versions. Then a broadcast in place and a reduction to the last GPU.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/nccl_programs/check.h"

__global__ void lastOfSharedMemory(int* result, int words) {
  extern __shared__ int shared[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) shared[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *result = shared[words - 1];
}

int attribute(cudaDeviceAttr which, int device) {
  int value = -1;
  CUDA_CHECK(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

void ask(int device, std::set<std::string>& bus_ids) {
  cudaDeviceProp p;
  CUDA_CHECK(cudaGetDeviceProperties(&p, device));
  REQUIRE(strlen(p.name) > 0 && p.major >= 7 && p.warpSize == 32, "'%s' of compute capability %d.%d", p.name,
          p.major, p.minor);
  REQUIRE(p.multiProcessorCount > 0 && p.maxThreadsPerBlock >= 1024, "%d SMs", p.multiProcessorCount);
  REQUIRE(p.sharedMemPerBlock >= 48 << 10 && p.sharedMemPerBlockOptin >= p.sharedMemPerBlock,
          "shared memory");
  REQUIRE(attribute(cudaDevAttrMultiProcessorCount, device) == p.multiProcessorCount, "SMs");
  REQUIRE(attribute(cudaDevAttrComputeCapabilityMajor, device) == p.major, "major");
  REQUIRE(attribute(cudaDevAttrUnifiedAddressing, device) == 1, "no unified addressing");
  REQUIRE(attribute(cudaDevAttrClockRate, device) > 0 && attribute(cudaDevAttrMemoryClockRate, device) > 0,
          "clocks");
  REQUIRE(attribute(cudaDevAttrGlobalMemoryBusWidth, device) > 0 && p.l2CacheSize > 0, "bus, cache");
  char bus_id[32];
  CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
  REQUIRE(bus_ids.insert(bus_id).second, "%s is there twice", bus_id);
  int again = -1;
  CUDA_CHECK(cudaDeviceGetByPCIBusId(&again, bus_id));
  REQUIRE(again == device, "%s is device %d", bus_id, again);

  size_t before = 0, during = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&before, &total));
  REQUIRE(before <= total && total == p.totalGlobalMem, "%zu of %zu bytes are free", before, total);
  void* memory;
  CUDA_CHECK(cudaMalloc(&memory, 64 << 20));
  CUDA_CHECK(cudaMemGetInfo(&during, nullptr == memory ? nullptr : &total));
  REQUIRE(before - during >= 64 << 20, "64 MiB take %zu bytes", before - during);
  cudaPointerAttributes where;
  CUDA_CHECK(cudaPointerGetAttributes(&where, memory));
  REQUIRE(where.type == cudaMemoryTypeDevice && where.device == device, "memory of device %d", where.device);
  CUDA_CHECK(cudaFree(memory));
}

void useAllSharedMemory(int device) {
  const int bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  CUDA_CHECK(cudaFuncSetAttribute(lastOfSharedMemory, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  int threads = 0, grid = 0, blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &threads, lastOfSharedMemory, 1024, 0));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, lastOfSharedMemory, 256, bytes));
  REQUIRE(grid > 0 && threads >= 32 && blocks == 1, "%d blocks of %d, %d with all shared memory", grid,
          threads, blocks);
  cudaFuncAttributes of_kernel;
  CUDA_CHECK(cudaFuncGetAttributes(&of_kernel, lastOfSharedMemory));
  REQUIRE(of_kernel.maxThreadsPerBlock >= 256 && of_kernel.numRegs > 0, "%d threads",
          of_kernel.maxThreadsPerBlock);
  int* result;
  CUDA_CHECK(cudaMallocManaged(&result, sizeof(int)));
  CUDA_CHECK(cudaMemAdvise(result, sizeof(int), cudaMemAdviseSetPreferredLocation,
                           {cudaMemLocationTypeDevice, device}));
  CUDA_CHECK(cudaMemPrefetchAsync(result, sizeof(int), {cudaMemLocationTypeDevice, device}, 0, nullptr));
  lastOfSharedMemory<<<1, 256, bytes>>>(result, bytes / int(sizeof(int)));
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(*result == bytes / int(sizeof(int)) - 1, "%d", *result);
  CUDA_CHECK(cudaFree(result));
}

int main() {
  int n = 0, driver = 0, runtime = 0, nccl = 0;
  CUDA_CHECK(cudaGetDeviceCount(&n));
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  NCCL_CHECK(ncclGetVersion(&nccl));
  REQUIRE(driver >= runtime && runtime / 1000 == CUDART_VERSION / 1000, "driver %d, runtime %d", driver,
          runtime);
  REQUIRE(nccl >= 20000, "NCCL %d", nccl);
  std::set<std::string> bus_ids;
  for (int device = 0; device < n; ++device) {
    CUDA_CHECK(cudaSetDevice(device));
    ask(device, bus_ids);
    useAllSharedMemory(device);
    for (int peer = 0; peer < n; ++peer) {
      int can = 0;
      if (peer == device) continue;
      CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
      if (can == 0) continue;
      CUDA_CHECK(cudaDeviceEnablePeerAccess(peer, 0));
      REQUIRE(cudaDeviceEnablePeerAccess(peer, 0) == cudaErrorPeerAccessAlreadyEnabled, "enabled twice");
      cudaGetLastError();
    }
  }
  std::vector<ncclComm_t> comms(n);
  std::vector<signed char*> bytes(n);
  NCCL_CHECK(ncclCommInitAll(comms.data(), n, nullptr));
  constexpr int kBytes = 1001;
  for (int g = 0; g < n; ++g) {
    CUDA_CHECK(cudaSetDevice(g));
    CUDA_CHECK(cudaMalloc(&bytes[g], kBytes));
    CUDA_CHECK(cudaMemset(bytes[g], g + 1, kBytes));
  }
  for (const bool reduce : {false, true}) {  // all get rank 0's ones; then the last their sum
    NCCL_CHECK(ncclGroupStart());
    for (int g = 0; g < n; ++g) {
      if (reduce)
        NCCL_CHECK(ncclReduce(bytes[g], bytes[g], kBytes, ncclInt8, ncclSum, n - 1, comms[g], nullptr));
      if (!reduce) NCCL_CHECK(ncclBcast(bytes[g], kBytes, ncclInt8, 0, comms[g], nullptr));
    }
    NCCL_CHECK(ncclGroupEnd());
  }
  std::vector<signed char> got(kBytes);
  CUDA_CHECK(cudaSetDevice(0));
  CUDA_CHECK(cudaMemcpyPeer(bytes[0], 0, bytes[n - 1], n - 1, kBytes));
  CUDA_CHECK(cudaMemcpy(got.data(), bytes[0], kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kBytes; ++i) REQUIRE(got[i] == n, "byte %d is %d, expected %d", i, got[i], n);
  for (int g = 0; g < n; ++g) {
    CUDA_CHECK(cudaSetDevice(g));
    CUDA_CHECK(cudaFree(bytes[g]));
    NCCL_CHECK(ncclCommDestroy(comms[g]));
  }
  printf("device_query: %d GPUs: believable\n", n);
}
