// Several processes, each with several GPUs and one thread, as NVIDIA's documentation shows it: communicators
// are made in a group, operations of all GPUs of the process go in groups. Then the same GPUs one after the
// other around a ring of all processes.
#include <vector>

#include "tests/nccl_programs/launcher.h"

constexpr int kDevices = 3;  // of each process
constexpr int kCount = 10000;

__global__ void fill(float* values, int rank) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] = float(i % 100 + rank);
}

struct Device {
  float* send;
  float* recv;
  cudaStream_t stream;
  ncclComm_t comm;
};

/// Counts what is not as value(i) says.
template <class Value>
int wrong(const Device& device, const Value& value) {
  std::vector<float> got(kCount);
  CUDA_CHECK(cudaMemcpyAsync(got.data(), device.recv, kCount * sizeof(float), cudaMemcpyDeviceToHost,
                             device.stream));
  CUDA_CHECK(cudaStreamSynchronize(device.stream));
  int result = 0;
  for (int i = 0; i < kCount; ++i) result += got[i] != value(i);
  return result;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2, "usage: %s FILE", argv[0]);
  const int process = numberFrom("RANK");
  const int nranks = numberFrom("WORLD_SIZE") * kDevices;
  const ncclUniqueId id = idByFile(process, argv[1]);
  const int first = process * kDevices;

  std::vector<Device> devices(kDevices);
  for (int i = 0; i < kDevices; ++i) {
    CUDA_CHECK(cudaSetDevice(numberFrom("LOCAL_RANK") * kDevices + i));
    CUDA_CHECK(cudaMalloc((void**)&devices[i].send, kCount * sizeof(float)));
    CUDA_CHECK(cudaMalloc((void**)&devices[i].recv, kCount * sizeof(float)));
    CUDA_CHECK(cudaStreamCreate(&devices[i].stream));
    fill<<<(kCount + 255) / 256, 256, 0, devices[i].stream>>>(devices[i].send, first + i);
    CUDA_CHECK(cudaGetLastError());
  }
  NCCL_CHECK(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    CUDA_CHECK(cudaSetDevice(numberFrom("LOCAL_RANK") * kDevices + i));
    NCCL_CHECK(ncclCommInitRank(&devices[i].comm, nranks, id, first + i));
  }
  NCCL_CHECK(ncclGroupEnd());

  NCCL_CHECK(ncclGroupStart());
  for (const Device& d : devices)
    NCCL_CHECK(ncclAllReduce(d.send, d.recv, kCount, ncclFloat, ncclSum, d.comm, d.stream));
  NCCL_CHECK(ncclGroupEnd());
  const int sum_of_ranks = nranks * (nranks - 1) / 2;
  for (const Device& d : devices) {
    const int count = wrong(d, [&](int i) { return float(nranks * (i % 100) + sum_of_ranks); });
    REQUIRE(count == 0, "%d wrong sums", count);
  }

  NCCL_CHECK(ncclGroupStart());
  for (int i = 0; i < kDevices; ++i) {
    const Device& d = devices[i];
    const int rank = first + i;
    NCCL_CHECK(ncclSend(d.send, kCount, ncclFloat, (rank + 1) % nranks, d.comm, d.stream));
    NCCL_CHECK(ncclRecv(d.recv, kCount, ncclFloat, (rank + nranks - 1) % nranks, d.comm, d.stream));
  }
  NCCL_CHECK(ncclGroupEnd());
  for (int i = 0; i < kDevices; ++i) {
    const int left = (first + i + nranks - 1) % nranks;
    const int count = wrong(devices[i], [&](int at) { return float(at % 100 + left); });
    REQUIRE(count == 0, "%d wrong values from rank %d", count, left);
  }

  for (const Device& d : devices) {
    CUDA_CHECK(cudaFree(d.send));
    CUDA_CHECK(cudaFree(d.recv));
    CUDA_CHECK(cudaStreamDestroy(d.stream));
  }
  NCCL_CHECK(ncclGroupStart());
  for (const Device& d : devices) NCCL_CHECK(ncclCommFinalize(d.comm));
  NCCL_CHECK(ncclGroupEnd());
  for (const Device& d : devices) NCCL_CHECK(ncclCommDestroy(d.comm));
  printf("devices_per_process: %d ranks: as expected\n", nranks);
  return 0;
}
