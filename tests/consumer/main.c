// A C program that uses Tutti as it would use NCCL: the version, and an all-reduce of one rank.
#include <stdio.h>
#include <string.h>

#include "nccl.h"
#include "tutti/launch.h"
#include "tutti/statistics.h"

#define COUNT 5

static int failed(const char* what, ncclResult_t result) {
  if (result == ncclSuccess) return 0;
  fprintf(stderr, "consumer_c: %s: %s: %s\n", what, ncclGetErrorString(result), ncclGetLastError(NULL));
  return 1;
}

int main(void) {
  const float sent[COUNT] = {0.0F, 1.5F, -2.0F, 3.25F, 1e30F};
  float received[COUNT] = {0};
  int version = 0;
  ncclUniqueId id;
  ncclComm_t comm = NCCL_COMM_NULL;

  if (failed("ncclGetVersion", ncclGetVersion(&version))) return 1;
  if (version != NCCL_VERSION_CODE) {
    fprintf(stderr, "consumer_c: the library is version %d, its header %d\n", version, NCCL_VERSION_CODE);
    return 1;
  }
  if (failed("ncclGetUniqueId", ncclGetUniqueId(&id))) return 1;
  if (failed("ncclCommInitRank", ncclCommInitRank(&comm, 1, id, 0))) return 1;
  if (failed("ncclAllReduce", ncclAllReduce(sent, received, COUNT, ncclFloat, ncclSum, comm, NULL))) return 1;
  if (failed("ncclCommDestroy", ncclCommDestroy(comm))) return 1;
  if (memcmp(sent, received, sizeof sent) != 0) {
    fprintf(stderr, "consumer_c: the sum over one rank is not what that rank sent\n");
    return 1;
  }
  printf("consumer_c: version %d, all-reduce of one rank is right\n", version);
  return 0;
}
