// A preloaded library with mistakes, for the random programs to find: NCCL_PLANTED says which.
#include <nccl.h>
#include <stdlib.h>
#include <string.h>

static int isPlanted(const char* mistake) {
  const char* planted = getenv("NCCL_PLANTED");
  return planted != NULL && strcmp(planted, mistake) == 0;
}

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const int is_unsigned = datatype == ncclUint8 || datatype == ncclUint32 || datatype == ncclUint64;
  if (isPlanted("signed_max") && is_unsigned && op == ncclMax) datatype = (ncclDataType_t)(datatype - 1);
  return pncclAllReduce(sendbuff, recvbuff, count, datatype, op, comm, stream);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  if (isPlanted("last_element") && sendcount > 500) --sendcount;
  return pncclAllGather(sendbuff, recvbuff, sendcount, datatype, comm, stream);
}

// The second of two messages is sent in the place of the first.
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  static _Thread_local const void* before;
  const void* sent = isPlanted("old_message") && before != NULL && count < 64 ? before : sendbuff;
  if (count != 0) before = sendbuff;
  return pncclSend(sent, count, datatype, peer, comm, stream);
}
