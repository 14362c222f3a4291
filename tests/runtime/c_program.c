/* A C program as a user of NCCL would write it, on one rank. */
#include <nccl.h>
#include <stdio.h>
#include <tutti/stream.h>

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
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  tuttiStream_t stream = NULL;
  ncclUniqueId id;
  int version = 0;
  int count = 0;
  float values[3] = {1, 2, 3};
  float result[3] = {0, 0, 0};
  float received[3] = {0, 0, 0};
  CHECK(ncclGetVersion(&version));
  CHECK(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
  CHECK(ncclCommCount(comm, &count));
  CHECK(pncclAllReduce(values, result, 3, ncclFloat, ncclSum, comm, NULL));
  CHECK(tuttiStreamCreate(&stream));
  CHECK(ncclGroupStart());
  CHECK(ncclSend(values, 3, ncclFloat, 0, comm, stream));
  CHECK(ncclRecv(received, 3, ncclFloat, 0, comm, stream));
  CHECK(ncclGroupEnd());
  CHECK(tuttiStreamSynchronize(stream));
  CHECK(tuttiStreamDestroy(stream));
  CHECK(ncclCommDestroy(comm));
  return version == NCCL_VERSION_CODE && count == 1 && result[2] == 3 && received[2] == 3 ? 0 : 1;
}
