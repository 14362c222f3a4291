// A program that looks after its errors: wrong arguments, a collective that one rank never enters, found by
// polling with a deadline and ended by ncclCommAbort; then a new communicator, on which all goes well.
#include <cstring>
#include <ctime>

#include "tests/nccl_programs/launcher.h"

__global__ void fill(float* values, int count, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = value;
}

/// What frameworks' watchdogs do: true where the stream came to its end before the deadline.
bool finishes(cudaStream_t stream, ncclComm_t comm, double seconds) {
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (;;) {
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaSuccess) return true;
    REQUIRE(state == cudaErrorNotReady, "cudaStreamQuery: %s", cudaGetErrorString(state));
    ncclResult_t error = ncclInternalError;
    NCCL_CHECK(ncclCommGetAsyncError(comm, &error));
    if (error != ncclSuccess) return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (double(now.tv_sec - begin.tv_sec) + 1e-9 * double(now.tv_nsec - begin.tv_nsec) > seconds)
      return false;
    usleep(2000);
  }
}

void wrongArguments(const Process& self, float* values) {
  struct {
    const char* what;
    ncclResult_t got;
  } calls[] = {
      {"a type that is none",
       ncclAllReduce(values, values, 1, ncclDataType_t(99), ncclSum, self.comm, self.stream)},
      {"an operation that is none",
       ncclAllReduce(values, values, 1, ncclFloat, ncclRedOp_t(77), self.comm, self.stream)},
      {"a root out of range",
       ncclBroadcast(values, values, 1, ncclFloat, self.nranks, self.comm, self.stream)},
      {"a peer out of range", ncclSend(values, 1, ncclFloat, -1, self.comm, self.stream)},
      {"no buffer", ncclAllReduce(nullptr, values, 1, ncclFloat, ncclSum, self.comm, self.stream)},
  };
  for (const auto& call : calls) {
    REQUIRE(call.got == ncclInvalidArgument, "%s: %s", call.what, ncclGetErrorString(call.got));
    REQUIRE(strlen(ncclGetLastError(self.comm)) > 10, "%s: no words about it", call.what);
  }
  ncclResult_t error = ncclInternalError;
  NCCL_CHECK(ncclCommGetAsyncError(self.comm, &error));
  REQUIRE(error == ncclSuccess, "the communicator should be usable, but: %s", ncclGetErrorString(error));
}

void sumsUp(const Process& self, float* values, int count) {
  fill<<<(count + 255) / 256, 256, 0, self.stream>>>(values, count, float(self.rank + 1));
  NCCL_CHECK(ncclAllReduce(values, values, count, ncclFloat, ncclSum, self.comm, self.stream));
  REQUIRE(finishes(self.stream, self.comm, 60), "rank %d: an all-reduce does not end", self.rank);
  float last = 0;
  CUDA_CHECK(cudaMemcpy(&last, values + count - 1, sizeof last, cudaMemcpyDeviceToHost));
  const float expected = float(self.nranks * (self.nranks + 1) / 2);
  REQUIRE(last == expected, "%g, expected %g", last, expected);
}

/// Returns when all ranks have come, by files: no communicator is in their way.
void meet(const Process& self, const std::string& path) {
  const auto placeOf = [&](int rank) { return path + "." + std::to_string(rank); };
  FILE* const mine = fopen(placeOf(self.rank).c_str(), "wb");
  REQUIRE(mine != nullptr && fclose(mine) == 0, "%s", path.c_str());
  for (int rank = 0; rank < self.nranks; ++rank) {
    for (int tries = 0; access(placeOf(rank).c_str(), F_OK) != 0; ++tries) {
      REQUIRE(tries < 6000, "rank %d does not come", rank);
      usleep(10000);
    }
  }
}

int main(int, char** argv) {
  constexpr int kCount = 5000;
  Process self = joinByFile(argv[1]);
  float* values;
  CUDA_CHECK(cudaMalloc(&values, kCount * sizeof(float)));

  // A kernel that cannot be launched: an error of CUDA, told once.
  fill<<<1, 4096, 0, self.stream>>>(values, kCount, 0);
  const cudaError_t launch = cudaGetLastError();
  REQUIRE(launch == cudaErrorInvalidConfiguration, "%s", cudaGetErrorName(launch));
  REQUIRE(cudaGetLastError() == cudaSuccess, "the error is told again");
  void* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, size_t(1) << 50) == cudaErrorMemoryAllocation, "a pebibyte was allocated");
  REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation, "the error is forgotten");

  wrongArguments(self, values);
  sumsUp(self, values, kCount);
  if (self.rank != 0) {
    // Rank 0 stays out of this one.
    NCCL_CHECK(ncclAllReduce(values, values, kCount, ncclFloat, ncclSum, self.comm, self.stream));
    REQUIRE(!finishes(self.stream, self.comm, 0.5), "rank %d: an all-reduce without rank 0 has ended",
            self.rank);
  }
  // Whoever aborts earlier ends the calls of the others.
  meet(self, std::string(argv[1]) + ".stuck");
  NCCL_CHECK(ncclCommAbort(self.comm));
  CUDA_CHECK(cudaStreamSynchronize(self.stream));

  const ncclUniqueId id = idByFile(self.rank, std::string(argv[1]) + ".again");
  NCCL_CHECK(ncclCommInitRank(&self.comm, self.nranks, id, self.rank));
  sumsUp(self, values, kCount);
  CUDA_CHECK(cudaFree(values));
  leave(self);
  printf("failing_peer: rank %d of %d: as it should\n", self.rank, self.nranks);
}
