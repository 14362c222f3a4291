// A weighted average in bf16: PreMulSum with a scalar of each rank's own, from the host and from device
// memory; then communicators of rows and columns of a grid of ranks, each with an id of its own. Kernels
// print.
#include <cmath>
#include <vector>

#include <cuda_bf16.h>

#include "tests/nccl_programs/launcher.h"

constexpr int kCount = 2 * 700;

__global__ void fill(__nv_bfloat162* values, int rank) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kCount / 2) return;
  const __nv_bfloat162 base = __floats2bfloat162_rn(float(i % 16), float(i % 9));
  values[i] = __hfma2(base, __float2bfloat162_rn(2.0f), __float2bfloat162_rn(float(rank)));
}

/// Counts what is further than `limit` from the expected, and says the first.
__global__ void compare(const __nv_bfloat16* got, const float* expected, float limit, int* wrong) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kCount; i += gridDim.x * blockDim.x) {
    const float value = __bfloat162float(got[i]);
    if (fabsf(value - expected[i]) <= limit * fabsf(expected[i])) continue;
    if (atomicAdd(wrong, 1) == 0)
      printf("element %d is %g, expected %g\n", i, double(value), double(expected[i]));
  }
}

float valueOf(int i, int rank) { return 2.0f * float(i % 2 == 0 ? i / 2 % 16 : i / 2 % 9) + float(rank); }
float weightOf(int rank, int n) { return rank == 0 ? 0.5f : 0.5f / float(n); }

void requireAll(const __nv_bfloat16* got, const std::vector<float>& expected, cudaStream_t stream) {
  float* on_device;
  int* wrong;
  CUDA_CHECK(cudaMalloc(&on_device, kCount * sizeof(float)));
  CUDA_CHECK(cudaMallocManaged(&wrong, sizeof(int)));
  *wrong = 0;
  CUDA_CHECK(
      cudaMemcpyAsync(on_device, expected.data(), kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
  compare<<<3, 128, 0, stream>>>(got, on_device, 0.02f, wrong);
  CUDA_CHECK(cudaStreamSynchronize(stream));
  REQUIRE(*wrong == 0, "%d elements are wrong", *wrong);
  CUDA_CHECK(cudaFree(on_device));
  CUDA_CHECK(cudaFree(wrong));
}

/// The sum over a row or column of the grid of ranks, by a communicator of its own.
void sumOver(const Process& self, const std::string& name, const std::vector<int>& members,
             __nv_bfloat16* values) {
  int place = 0;
  while (members[place] != self.rank) ++place;
  const ncclUniqueId id = idByFile(place, name);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t comm;
  NCCL_CHECK(ncclCommInitRankConfig(&comm, int(members.size()), id, place, &config));
  int count = 0, number = -1;
  NCCL_CHECK(ncclCommCount(comm, &count));
  NCCL_CHECK(ncclCommUserRank(comm, &number));
  REQUIRE(count == int(members.size()) && number == place, "rank %d of %d", number, count);
  fill<<<6, 128, 0, self.stream>>>(reinterpret_cast<__nv_bfloat162*>(values), self.rank);
  NCCL_CHECK(ncclAllReduce(values, values, kCount, ncclBfloat16, ncclSum, comm, self.stream));
  std::vector<float> expected(kCount, 0);
  for (const int member : members) {
    for (int i = 0; i < kCount; ++i) expected[i] += valueOf(i, member);
  }
  requireAll(values, expected, self.stream);
  NCCL_CHECK(ncclCommDestroy(comm));
}

int main(int, char** argv) {
  const Process self = joinByFile(argv[1]);
  __nv_bfloat16 *values, *scalar;
  CUDA_CHECK(cudaMalloc(&values, kCount * sizeof(__nv_bfloat16)));
  CUDA_CHECK(cudaMalloc(&scalar, sizeof(__nv_bfloat16)));
  std::vector<float> expected(kCount, 0);
  for (int rank = 0; rank < self.nranks; ++rank) {
    for (int i = 0; i < kCount; ++i) expected[i] += weightOf(rank, self.nranks) * valueOf(i, rank);
  }
  const __nv_bfloat16 weight = __float2bfloat16(weightOf(self.rank, self.nranks));
  CUDA_CHECK(cudaMemcpy(scalar, &weight, sizeof weight, cudaMemcpyHostToDevice));
  for (const auto residence : {ncclScalarHostImmediate, ncclScalarDevice}) {
    __nv_bfloat16 here = weight;
    void* const where = residence == ncclScalarDevice ? static_cast<void*>(scalar) : &here;
    ncclRedOp_t weighted;
    NCCL_CHECK(ncclRedOpCreatePreMulSum(&weighted, where, ncclBfloat16, residence, self.comm));
    fill<<<6, 128, 0, self.stream>>>(reinterpret_cast<__nv_bfloat162*>(values), self.rank);
    NCCL_CHECK(ncclAllReduce(values, values, kCount, ncclBfloat16, weighted, self.comm, self.stream));
    NCCL_CHECK(ncclRedOpDestroy(weighted, self.comm));  // right after it is enqueued
    requireAll(values, expected, self.stream);
  }
  // Rows of two ranks, and columns.
  const int row = self.rank / 2, column = self.rank % 2;
  std::vector<int> in_row{2 * row}, in_column;
  if (2 * row + 1 < self.nranks) in_row.push_back(2 * row + 1);
  for (int r = column; r < self.nranks; r += 2) in_column.push_back(r);
  sumOver(self, argv[1] + std::string(".row") + std::to_string(row), in_row, values);
  sumOver(self, argv[1] + std::string(".column") + std::to_string(column), in_column, values);
  CUDA_CHECK(cudaFree(values));
  CUDA_CHECK(cudaFree(scalar));
  leave(self);
  printf("bf16_average: rank %d of %d: right\n", self.rank, self.nranks);
}
