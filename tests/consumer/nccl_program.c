// A program as it is written for NCCL, but for its buffers, which are host memory: it knows nothing of Tutti.
// One process per rank; rank 0 makes the id and hands its bytes to the others, here through pipes.
//
//   nccl_program [NRANKS]
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT 1000
#define MAX_RANKS 16

#define NCCLCHECK(cmd)                                                                       \
  do {                                                                                       \
    ncclResult_t res = cmd;                                                                  \
    if (res != ncclSuccess) {                                                                \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #cmd, ncclGetErrorString(res)); \
      fprintf(stderr, "%s\n", ncclGetLastError(NULL));                                       \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static int pipes[MAX_RANKS][2];

static ncclUniqueId shareId(int rank, int nranks) {
  ncclUniqueId id;
  if (rank == 0) {
    NCCLCHECK(ncclGetUniqueId(&id));
    for (int peer = 1; peer < nranks; ++peer)
      CHECK(write(pipes[peer][1], &id, sizeof(id)) == (ssize_t)sizeof(id));
  } else {
    CHECK(read(pipes[rank][0], &id, sizeof(id)) == (ssize_t)sizeof(id));
  }
  return id;
}

static void allReduce(ncclComm_t comm, int rank, int nranks) {
  float* sendbuff = malloc(COUNT * sizeof(float));
  float* recvbuff = malloc(COUNT * sizeof(float));
  CHECK(sendbuff != NULL && recvbuff != NULL);
  for (int i = 0; i < COUNT; ++i) sendbuff[i] = (float)(rank + i);
  NCCLCHECK(ncclAllReduce(sendbuff, recvbuff, COUNT, ncclFloat, ncclSum, comm, NULL));
  for (int i = 0; i < COUNT; ++i) CHECK(recvbuff[i] == (float)(nranks * i + nranks * (nranks - 1) / 2));
  free(sendbuff);
  free(recvbuff);
}

/// To the right, from the left; with the sum of all ranks' numbers in the same group.
static void exchangeInGroup(ncclComm_t comm, int rank, int nranks) {
  const int right = (rank + 1) % nranks;
  const int left = (rank + nranks - 1) % nranks;
  int from_left = -1;
  long long sum = rank;
  NCCLCHECK(ncclGroupStart());
  NCCLCHECK(ncclSend(&rank, 1, ncclInt, right, comm, NULL));
  NCCLCHECK(ncclRecv(&from_left, 1, ncclInt, left, comm, NULL));
  NCCLCHECK(ncclAllReduce(&sum, &sum, 1, ncclInt64, ncclSum, comm, NULL));
  NCCLCHECK(ncclGroupEnd());
  CHECK(from_left == left);
  CHECK(sum == (long long)nranks * (nranks - 1) / 2);
}

static int runRank(int rank, int nranks) {
  int version = 0;
  int count = 0;
  int user_rank = -1;
  ncclComm_t comm;
  ncclUniqueId id = shareId(rank, nranks);
  NCCLCHECK(ncclGetVersion(&version));
  NCCLCHECK(ncclCommInitRank(&comm, nranks, id, rank));
  NCCLCHECK(ncclCommCount(comm, &count));
  NCCLCHECK(ncclCommUserRank(comm, &user_rank));
  CHECK(version == NCCL_VERSION_CODE && count == nranks && user_rank == rank);
  allReduce(comm, rank, nranks);
  exchangeInGroup(comm, rank, nranks);
  NCCLCHECK(ncclCommFinalize(comm));
  NCCLCHECK(ncclCommDestroy(comm));
  printf("[rank %d] nccl_program: success, NCCL version %d\n", rank, version);
  return 0;
}

int main(int argc, char* argv[]) {
  const int nranks = argc > 1 ? atoi(argv[1]) : 2;
  int status = 0;
  int failed = 0;
  CHECK(nranks >= 1 && nranks <= MAX_RANKS);
  for (int rank = 0; rank < nranks; ++rank) CHECK(pipe(pipes[rank]) == 0);
  for (int rank = 0; rank < nranks; ++rank) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) return runRank(rank, nranks);
  }
  while (wait(&status) > 0) failed |= status;
  return failed != 0;
}
