// k-means, one process per GPU: the centres lie in constant memory; sums and counts of the clusters are added
// up on each GPU by atomics, over the GPUs by two all-reduces of one group. Coordinates are whole numbers:
// sums are exact.
#include <cfloat>
#include <vector>

#include "tests/nccl_programs/launcher.h"

constexpr int kPoints = 3000;  // of each rank
constexpr int kClusters = 5;
constexpr int kRounds = 6;

struct Point {
  float x, y;
};

__constant__ Point centres[kClusters];

__global__ void assign(const Point* points, int count, float* sums, int* counts) {
  __shared__ float block_sums[2 * kClusters];
  __shared__ int block_counts[kClusters];
  if (threadIdx.x < 2 * kClusters) block_sums[threadIdx.x] = 0;
  if (threadIdx.x < kClusters) block_counts[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    const Point p = points[i];
    int best = 0;
    float least = FLT_MAX;
#pragma unroll
    for (int c = 0; c < kClusters; ++c) {
      const float dx = p.x - centres[c].x;
      const float dy = p.y - centres[c].y;
      const float distance =
          __fadd_rn(__fmul_rn(dx, dx), __fmul_rn(dy, dy));  // not contracted, as on the CPU
      if (distance < least) {
        least = distance;
        best = c;
      }
    }
    atomicAdd(&block_sums[2 * best], p.x);
    atomicAdd(&block_sums[2 * best + 1], p.y);
    atomicAdd(&block_counts[best], 1);
  }
  __syncthreads();
  if (threadIdx.x < 2 * kClusters) atomicAdd(&sums[threadIdx.x], block_sums[threadIdx.x]);
  if (threadIdx.x < kClusters) atomicAdd(&counts[threadIdx.x], block_counts[threadIdx.x]);
}

Point pointOf(int rank, int i) {
  const unsigned hash = (unsigned(rank) * kPoints + i) * 2654435761u;
  const int corner = int(hash >> 20) % kClusters;
  return {float(corner % 3 * 100 + int(hash >> 5) % 41), float(corner / 3 * 120 + int(hash >> 11) % 41)};
}

Point centreOf(const float* sum, int count, Point otherwise) {
  return count == 0 ? otherwise : Point{sum[0] / float(count), sum[1] / float(count)};
}

std::vector<Point> onCpu(int nranks, std::vector<Point> now) {
  for (int round = 0; round < kRounds; ++round) {
    float sums[2 * kClusters] = {};
    int counts[kClusters] = {};
    for (int r = 0; r < nranks; ++r) {
      for (int i = 0; i < kPoints; ++i) {
        const Point p = pointOf(r, i);
        int best = 0;
        float least = FLT_MAX;
        for (int c = 0; c < kClusters; ++c) {
          const volatile float a = (p.x - now[c].x) * (p.x - now[c].x);
          const volatile float b = (p.y - now[c].y) * (p.y - now[c].y);
          if (a + b < least) {
            least = a + b;
            best = c;
          }
        }
        sums[2 * best] += p.x;
        sums[2 * best + 1] += p.y;
        ++counts[best];
      }
    }
    for (int c = 0; c < kClusters; ++c) now[c] = centreOf(&sums[2 * c], counts[c], now[c]);
  }
  return now;
}

int main(int, char** argv) {
  const Process self = joinByFile(argv[1]);
  std::vector<Point> points(kPoints);
  for (int i = 0; i < kPoints; ++i) points[i] = pointOf(self.rank, i);
  std::vector<Point> start;
  for (int c = 0; c < kClusters; ++c) start.push_back(pointOf(0, c));
  Point* device_points;
  float* sums;
  int* counts;
  CUDA_CHECK(cudaMalloc(&device_points, kPoints * sizeof(Point)));
  CUDA_CHECK(cudaMalloc(&sums, 2 * kClusters * sizeof(float)));
  CUDA_CHECK(cudaMalloc(&counts, kClusters * sizeof(int)));
  CUDA_CHECK(
      cudaMemcpyAsync(device_points, points.data(), kPoints * sizeof(Point), cudaMemcpyDefault, self.stream));

  auto now = start;
  for (int round = 0; round < kRounds; ++round) {
    CUDA_CHECK(
        cudaMemcpyToSymbolAsync(centres, now.data(), sizeof centres, 0, cudaMemcpyHostToDevice, self.stream));
    CUDA_CHECK(cudaMemsetAsync(sums, 0, 2 * kClusters * sizeof(float), self.stream));
    CUDA_CHECK(cudaMemsetAsync(counts, 0, kClusters * sizeof(int), self.stream));
    assign<<<(kPoints + 127) / 128, 128, 0, self.stream>>>(device_points, kPoints, sums, counts);
    CUDA_CHECK(cudaPeekAtLastError());
    NCCL_CHECK(ncclGroupStart());
    NCCL_CHECK(ncclAllReduce(sums, sums, 2 * kClusters, ncclFloat32, ncclSum, self.comm, self.stream));
    NCCL_CHECK(ncclAllReduce(counts, counts, kClusters, ncclInt32, ncclSum, self.comm, self.stream));
    NCCL_CHECK(ncclGroupEnd());
    float all_sums[2 * kClusters];
    int all_counts[kClusters];
    CUDA_CHECK(cudaMemcpyAsync(all_sums, sums, sizeof all_sums, cudaMemcpyDeviceToHost, self.stream));
    CUDA_CHECK(cudaMemcpyAsync(all_counts, counts, sizeof all_counts, cudaMemcpyDeviceToHost, self.stream));
    CUDA_CHECK(cudaStreamSynchronize(self.stream));
    for (int c = 0; c < kClusters; ++c) now[c] = centreOf(&all_sums[2 * c], all_counts[c], now[c]);
  }
  const auto expected = onCpu(self.nranks, start);
  for (int c = 0; c < kClusters; ++c) {
    REQUIRE(now[c].x == expected[c].x && now[c].y == expected[c].y,
            "centre %d is (%g, %g), expected (%g, %g)", c, now[c].x, now[c].y, expected[c].x, expected[c].y);
  }
  CUDA_CHECK(cudaFree(device_points));
  CUDA_CHECK(cudaFree(sums));
  CUDA_CHECK(cudaFree(counts));
  leave(self);
  printf("kmeans: rank %d of %d: exact\n", self.rank, self.nranks);
}
