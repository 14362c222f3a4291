/* A C program as a user of NCCL would write it, on one rank. */
#include <nccl.h>
#include <stdio.h>

#define CHECK(call)                                                                    \
  do {                                                                                 \
    ncclResult_t code = (call);                                                        \
    if (code != ncclSuccess) {                                                         \
      printf("%s: %s: %s\n", #call, ncclGetErrorString(code), ncclGetLastError(NULL)); \
      return 1;                                                                        \
    }                                                                                  \
  } while (0)

int main(void) {
  ncclComm_t comm = NCCL_COMM_NULL;
  ncclUniqueId id;
  int version = 0;
  int count = 0;
  float values[3] = {1, 2, 3};
  float result[3] = {0, 0, 0};
  CHECK(ncclGetVersion(&version));
  CHECK(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRank(&comm, 1, id, 0));
  CHECK(ncclCommCount(comm, &count));
  CHECK(pncclAllReduce(values, result, 3, ncclFloat, ncclSum, comm, NULL));
  CHECK(ncclCommDestroy(comm));
  return version == NCCL_VERSION_CODE && count == 1 && result[2] == 3 ? 0 : 1;
}
