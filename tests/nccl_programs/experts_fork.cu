// Tokens go to experts on other GPUs and back: an all-to-all with a size for each pair, by grouped sends and
// receives. The program forks its ranks itself and hands the id out through pipes, as MPI programs do by
// broadcast.
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "tests/nccl_programs/check.h"

constexpr int kTokens = 400;  // of each rank
constexpr int kRanks = 4;
constexpr int kWidth = 2;  // int2

int expertOf(int rank, int token) { return (token * token + rank * 5 + token / 7) % kRanks; }
int2 tokenOf(int rank, int token) { return make_int2(rank * kTokens + token, token ^ rank); }

__global__ void expert(int2* tokens, int count, int rank) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) tokens[i].y = tokens[i].y * 3 + rank;
}

struct Layout {
  std::vector<int> counts = std::vector<int>(kRanks, 0);
  std::vector<int> starts = std::vector<int>(kRanks, 0);
  int total() const { return starts.back() + counts.back(); }
  void finish() { std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0); }
};

void exchange(const int2* from, const Layout& out, int2* to, const Layout& in, ncclComm_t comm,
              cudaStream_t stream) {
  NCCL_CHECK(ncclGroupStart());
  for (int peer = 0; peer < kRanks; ++peer) {
    NCCL_CHECK(ncclSend(from + out.starts[peer], out.counts[peer] * kWidth, ncclInt32, peer, comm, stream));
    NCCL_CHECK(ncclRecv(to + in.starts[peer], in.counts[peer] * kWidth, ncclInt32, peer, comm, stream));
  }
  NCCL_CHECK(ncclGroupEnd());
}

void work(int rank, const ncclUniqueId& id) {
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  CUDA_CHECK(cudaSetDevice(rank % devices));
  ncclComm_t comm;
  NCCL_CHECK(ncclCommInitRank(&comm, kRanks, id, rank));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));

  std::vector<std::vector<int>> mine(kRanks);  // tokens by expert
  for (int t = 0; t < kTokens; ++t) mine[expertOf(rank, t)].push_back(t);
  Layout out, in;
  std::vector<int2> sorted;
  for (int e = 0; e < kRanks; ++e) {
    out.counts[e] = int(mine[e].size());
    for (const int t : mine[e]) sorted.push_back(tokenOf(rank, t));
  }
  out.finish();
  // How many come from each rank: the sizes go first, by an all-gather.
  int* sizes;
  CUDA_CHECK(cudaMalloc(&sizes, (kRanks + 1) * kRanks * sizeof(int)));
  CUDA_CHECK(cudaMemcpyAsync(sizes, out.counts.data(), kRanks * sizeof(int), cudaMemcpyHostToDevice, stream));
  NCCL_CHECK(ncclAllGather(sizes, sizes + kRanks, kRanks, ncclInt32, comm, stream));
  std::vector<int> all(kRanks * kRanks);
  CUDA_CHECK(
      cudaMemcpyAsync(all.data(), sizes + kRanks, all.size() * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  for (int peer = 0; peer < kRanks; ++peer) in.counts[peer] = all[peer * kRanks + rank];
  in.finish();

  int2 *sent, *held;
  CUDA_CHECK(cudaMalloc(&sent, kTokens * sizeof(int2)));
  CUDA_CHECK(cudaMalloc(&held, in.total() * sizeof(int2)));
  CUDA_CHECK(cudaMemcpyAsync(sent, sorted.data(), kTokens * sizeof(int2), cudaMemcpyHostToDevice, stream));
  exchange(sent, out, held, in, comm, stream);
  expert<<<(in.total() + 127) / 128, 128, 0, stream>>>(held, in.total(), rank);
  CUDA_CHECK(cudaGetLastError());
  exchange(held, in, sent, out, comm, stream);
  CUDA_CHECK(cudaMemcpyAsync(sorted.data(), sent, kTokens * sizeof(int2), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  for (int e = 0, at = 0; e < kRanks; ++e) {
    for (const int t : mine[e]) {
      const int2 got = sorted[at++];
      const int2 before = tokenOf(rank, t);
      REQUIRE(got.x == before.x && got.y == before.y * 3 + e, "token %d of rank %d: (%d, %d)", t, rank, got.x,
              got.y);
    }
  }
  for (void* memory : {(void*)sizes, (void*)sent, (void*)held}) CUDA_CHECK(cudaFree(memory));
  CUDA_CHECK(cudaStreamDestroy(stream));
  NCCL_CHECK(ncclCommDestroy(comm));
}

int main() {
  std::vector<int> ends;
  std::vector<pid_t> children;
  for (int rank = 1; rank < kRanks; ++rank) {  // before CUDA is touched
    int ends_of[2];
    REQUIRE(pipe(ends_of) == 0, "pipe");
    const pid_t child = fork();
    if (child == 0) {
      close(ends_of[1]);
      ncclUniqueId id;
      REQUIRE(read(ends_of[0], &id, sizeof id) == ssize_t(sizeof id), "rank %d got no id", rank);
      work(rank, id);
      exit(EXIT_SUCCESS);
    }
    close(ends_of[0]);
    ends.push_back(ends_of[1]);
    children.push_back(child);
  }
  ncclUniqueId id;
  NCCL_CHECK(ncclGetUniqueId(&id));
  for (const int end : ends) REQUIRE(write(end, &id, sizeof id) == ssize_t(sizeof id), "sending the id");
  work(0, id);
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0, "a rank ended with %d", status);
  }
  printf("experts_fork: %d ranks, %d tokens: exact\n", kRanks, kRanks * kTokens);
}
