// A training step captured into a CUDA graph and replayed: gradients, all-reduce, update with momentum. It
// forks to a second stream and joins it again, takes its step number from device memory, and is timed by
// events.
#include <cmath>
#include <vector>

#include "tests/nccl_programs/launcher.h"

constexpr int kCount = 3000;
constexpr int kSteps = 9;

__global__ void gradient(const float* weight, float* result, const int* step, int rank) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) result[i] = weight[i] * 0.125f + float((i + *step * 3 + rank) % 16);
}

__global__ void update(float* weight, float* momentum, const float* gradient, float share) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kCount; i += gridDim.x * blockDim.x) {
    momentum[i] = fmaf(0.5f, momentum[i], gradient[i] * share);
    weight[i] -= 0.0625f * momentum[i];
  }
}

__global__ void norm(const float* gradient, float* result) {
  float sum = 0;
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) sum += gradient[i] * gradient[i];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

__global__ void advance(int* step) { ++*step; }

struct State {
  float *weight, *momentum, *gradient, *norm;
  int* step;
};

void enqueueStep(const Process& self, const State& state, cudaStream_t side, cudaEvent_t fork,
                 cudaEvent_t join) {
  gradient<<<(kCount + 127) / 128, 128, 0, self.stream>>>(state.weight, state.gradient, state.step,
                                                          self.rank);
  NCCL_CHECK(
      ncclAllReduce(state.gradient, state.gradient, kCount, ncclFloat, ncclSum, self.comm, self.stream));
  CUDA_CHECK(cudaEventRecord(fork, self.stream));
  CUDA_CHECK(cudaStreamWaitEvent(side, fork, 0));
  CUDA_CHECK(cudaMemsetAsync(state.norm, 0, sizeof(float), side));
  norm<<<1, 128, 0, side>>>(state.gradient, state.norm);
  CUDA_CHECK(cudaEventRecord(join, side));
  update<<<4, 128, 0, self.stream>>>(state.weight, state.momentum, state.gradient, 1.0f / float(self.nranks));
  advance<<<1, 1, 0, self.stream>>>(state.step);
  CUDA_CHECK(cudaStreamWaitEvent(self.stream, join, 0));
}

void check(const Process& self, const std::vector<float>& got, float got_norm) {
  std::vector<double> weight(kCount, 1), momentum(kCount, 0);
  double norm = 0;
  for (int step = 0; step < kSteps; ++step) {
    norm = 0;
    for (int i = 0; i < kCount; ++i) {
      double sum = 0;
      for (int r = 0; r < self.nranks; ++r) sum += weight[i] * 0.125 + (i + step * 3 + r) % 16;
      norm += sum * sum;
      momentum[i] = 0.5 * momentum[i] + sum / self.nranks;
      weight[i] -= 0.0625 * momentum[i];
    }
  }
  for (int i = 0; i < kCount; ++i) {
    REQUIRE(std::abs(got[i] - weight[i]) < 1e-4, "weight %d is %g, expected %g", i, got[i], weight[i]);
  }
  REQUIRE(std::abs(got_norm - norm) < 1e-4 * norm, "the gradient's norm is %g, expected %g", got_norm, norm);
}

int main(int, char** argv) {
  const Process self = joinByFile(argv[1]);
  State state;
  CUDA_CHECK(cudaMalloc(&state.weight, kCount * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&state.momentum, kCount * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&state.gradient, kCount * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&state.norm, sizeof(float)));
  CUDA_CHECK(cudaMalloc(&state.step, sizeof(int)));
  const std::vector<float> ones(kCount, 1);
  CUDA_CHECK(cudaMemcpy(state.weight, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(state.momentum, 0, kCount * sizeof(float)));
  CUDA_CHECK(cudaMemset(state.step, 0, sizeof(int)));
  CUDA_CHECK(cudaDeviceSynchronize());
  cudaStream_t side;
  CUDA_CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  cudaEvent_t fork, join, start, stop;
  CUDA_CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));

  enqueueStep(self, state, side, fork, join);  // one eagerly, as a warm-up
  CUDA_CHECK(cudaStreamSynchronize(self.stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal));
  enqueueStep(self, state, side, fork, join);
  CUDA_CHECK(cudaStreamEndCapture(self.stream, &graph));
  size_t nodes = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  REQUIRE(nodes >= 6, "the graph has %zu nodes", nodes);
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CUDA_CHECK(cudaEventRecord(start, self.stream));
  for (int step = 1; step < kSteps; ++step) CUDA_CHECK(cudaGraphLaunch(executable, self.stream));
  CUDA_CHECK(cudaEventRecord(stop, self.stream));
  CUDA_CHECK(cudaEventSynchronize(stop));
  float milliseconds = -1;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  REQUIRE(milliseconds > 0, "%g ms", milliseconds);

  std::vector<float> weight(kCount);
  float gradient_norm = 0;
  CUDA_CHECK(cudaMemcpy(weight.data(), state.weight, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(&gradient_norm, state.norm, sizeof(float), cudaMemcpyDeviceToHost));
  check(self, weight, gradient_norm);
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  for (cudaEvent_t event : {fork, join, start, stop}) CUDA_CHECK(cudaEventDestroy(event));
  for (float* memory : {state.weight, state.momentum, state.gradient, state.norm})
    CUDA_CHECK(cudaFree(memory));
  CUDA_CHECK(cudaFree(state.step));
  CUDA_CHECK(cudaStreamDestroy(side));
  leave(self);
  printf("graph_step: rank %d of %d: right\n", self.rank, self.nranks);
}
