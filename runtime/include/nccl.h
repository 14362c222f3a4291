// The C API of Tutti: source-compatible with NVIDIA's nccl.h 2.28.9 for everything that it declares.
//
// The types, constants and values are those of NCCL, so that a program written for NCCL compiles unchanged.
// Every function that is declared here is implemented. Each has a twin named pnccl... (the profiling alias):
// a preloaded tool may define ncclX itself and call pncclX.
//
// Pointers are host pointers: buffers live in ordinary memory. A NULL stream means that the operation is
// complete when the call returns.
//
// Where the CUDA toolkit's headers are found they are included, as NVIDIA's header does, unless
// TUTTI_NO_CUDA_HEADERS is defined; otherwise cudaStream_t is declared here.
#ifndef NCCL_H_
#define NCCL_H_

#if defined(__has_include) && !defined(TUTTI_NO_CUDA_HEADERS)
#if __has_include(<cuda_runtime.h>)
#define TUTTI_HAS_CUDA_HEADERS 1
#endif
#endif

#ifdef TUTTI_HAS_CUDA_HEADERS
#include <cuda_runtime.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifdef __cplusplus
#include <cuda_fp8.h>
#endif
#else
typedef struct CUstream_st* cudaStream_t;
#endif

#include <limits.h>
#include <stddef.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""

#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

#ifdef __cplusplus
extern "C" {
#endif

/// A rank's handle of a communicator. Opaque.
typedef struct ncclComm* ncclComm_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
/// What the ranks of one communicator share beforehand: 128 bytes, passed by value, position independent.
/// It holds a secret: whoever knows it can join. It serves one communicator.
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
  ncclNumResults = 8
} ncclResult_t;

/// Reduction operations. ncclAvg: floating-point inputs are multiplied by 1/nranks and summed; integers are
/// summed, then divided, truncating towards zero.
typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
  ncclNumOps = 5,
  ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

typedef enum {
  ncclInt8 = 0,
  ncclChar = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclHalf = 6,
  ncclFloat32 = 7,
  ncclFloat = 7,
  ncclFloat64 = 8,
  ncclDouble = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
} ncclDataType_t;

// Every function returns ncclSuccess or says what failed; ncclGetLastError then has the words.
// An ncclInvalidArgument leaves the communicator usable. After any other error only ncclCommGetAsyncError,
// ncclCommAbort and ncclCommDestroy are of use on it.
//
// One communicator is used by one thread at a time; different communicators are independent.
// ncclCommAbort may be called from any thread.

/// Version of the API as major * 10000 + minor * 100 + patch.
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/// Static text for a result, never NULL.
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/// Text of the last error of this process, never NULL, at most 1023 characters; valid until the calling
/// thread asks again. `comm` is ignored and may be NULL.
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/// Opens the rendezvous of one communicator in this process and describes it in *uniqueId. The process must
/// live until all ranks have joined.
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/// Joins the communicator of `nranks` ranks as `rank`; returns when all have joined. Ranks may be processes
/// or threads. On failure *comm is NULL.
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/// Frees the communicator. NULL is accepted; a handle that is already destroyed is ncclInvalidArgument. Data
/// that no call of this rank received is ncclInvalidUsage: the ranks' calls differed; the communicator is
/// freed all the same.
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/// Ends an operation that another thread may be inside of, with ncclRemoteError there and on all other ranks,
/// then frees the communicator.
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/// First failure of the communicator, or ncclSuccess.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/// Number of ranks.
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/// This rank's number, 0 to count - 1.
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/// Page-aligned host memory of `size` bytes (0 is accepted). Contents are zero. Once registered, ranks in other
/// processes read and write it in place.
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/// Frees memory of ncclMemAlloc. NULL is accepted; any other pointer is ncclInvalidArgument; memory that is still
/// registered is ncclInvalidUsage.
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

/// Registers `size` bytes at `buff` with the communicator, on this rank alone: operations on them then need no
/// copy, where the memory is of ncclMemAlloc. Other memory is accepted and gains nothing. Registering a byte
/// twice is ncclInvalidUsage.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);

/// Ends a registration. No operation may be using the buffer. Destroying the communicator ends all of them.
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/// Reduces `count` elements of every rank's sendbuff into every rank's recvbuff; all ranks end with the same
/// bits. In place when sendbuff == recvbuff.
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/// Reduces nranks * recvcount elements and leaves block r, of recvcount elements, on rank r. In place when
/// recvbuff == sendbuff + rank * recvcount.
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream);

/// Leaves the sendcount elements of rank r at recvbuff + r * sendcount on every rank. In place when
/// sendbuff == recvbuff + rank * sendcount.
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                            ncclComm_t comm, cudaStream_t stream);

/// Copies `count` elements of the root's sendbuff to every rank's recvbuff. sendbuff is read on the root
/// only. In place when sendbuff == recvbuff.
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            int root, ncclComm_t comm, cudaStream_t stream);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // NCCL_H_
