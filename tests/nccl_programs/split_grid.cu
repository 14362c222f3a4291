// A grid of ranks: communicators of its rows and of its columns, split off by colours; one rank in each row
// is left without. The first communicator goes before those that were made of it. One process per GPU.
#include <vector>

#include "tests/nccl_programs/launcher.h"

constexpr int kColumns = 2;
constexpr int kCount = 3000;

__global__ void fill(int* values, int rank) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) values[i] = i * (rank + 1);
}

/// The sum of each element over the communicator, checked: i times the factor.
void sumIs(int factor, const Process& self, ncclComm_t comm, const int* values, int* sums) {
  NCCL_CHECK(ncclAllReduce(values, sums, kCount, ncclInt, ncclSum, comm, self.stream));
  std::vector<int> got(kCount);
  CUDA_CHECK(cudaMemcpyAsync(got.data(), sums, kCount * sizeof(int), cudaMemcpyDeviceToHost, self.stream));
  CUDA_CHECK(cudaStreamSynchronize(self.stream));
  for (int i = 0; i < kCount; ++i)
    REQUIRE(got[i] == i * factor, "element %d is %d, not %d", i, got[i], i * factor);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2, "usage: %s FILE", argv[0]);
  const Process self = joinByFile(argv[1]);
  const int row = self.rank / kColumns;
  const int column = self.rank % kColumns;
  int* values = nullptr;
  int* sums = nullptr;
  CUDA_CHECK(cudaMalloc((void**)&values, kCount * sizeof(int)));
  CUDA_CHECK(cudaMalloc((void**)&sums, kCount * sizeof(int)));
  fill<<<(kCount + 127) / 128, 128, 0, self.stream>>>(values, self.rank);
  CUDA_CHECK(cudaGetLastError());

  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  ncclComm_t in_row = nullptr;
  ncclComm_t in_column = nullptr;
  ncclComm_t of_last = nullptr;
  NCCL_CHECK(ncclCommSplit(self.comm, row, column, &in_row, &config));
  NCCL_CHECK(ncclCommSplit(self.comm, column, -row, &in_column, nullptr));
  const bool is_last = column == kColumns - 1;
  NCCL_CHECK(ncclCommSplit(self.comm, is_last ? 0 : NCCL_SPLIT_NOCOLOR, 0, &of_last, nullptr));
  REQUIRE((of_last != nullptr) == is_last, "the split without a colour");

  const int rows = self.nranks / kColumns;
  int rank = -1, nranks = -1;
  NCCL_CHECK(ncclCommUserRank(in_column, &rank));
  NCCL_CHECK(ncclCommCount(in_column, &nranks));
  REQUIRE(rank == rows - 1 - row && nranks == rows, "rank %d of %d in the column", rank, nranks);

  int of_row = 0, of_column = 0, of_all = 0, of_last_column = 0;
  for (int other = 0; other < self.nranks; ++other) {
    of_all += other + 1;
    if (other / kColumns == row) of_row += other + 1;
    if (other % kColumns == column) of_column += other + 1;
    if (other % kColumns == kColumns - 1) of_last_column += other + 1;
  }
  sumIs(of_all, self, self.comm, values, sums);
  sumIs(of_row, self, in_row, values, sums);
  NCCL_CHECK(ncclCommDestroy(self.comm));
  sumIs(of_column, self, in_column, values, sums);
  sumIs(of_row, self, in_row, values, sums);
  if (is_last) sumIs(of_last_column, self, of_last, values, sums);

  if (is_last) NCCL_CHECK(ncclCommDestroy(of_last));
  NCCL_CHECK(ncclCommDestroy(in_row));
  NCCL_CHECK(ncclCommDestroy(in_column));
  CUDA_CHECK(cudaFree(values));
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaStreamDestroy(self.stream));
  printf("split_grid: rank %d: as expected\n", self.rank);
  return 0;
}
