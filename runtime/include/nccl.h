// The C API of Tutti: source-compatible with NVIDIA's nccl.h 2.28.9.
//
// The types, constants, values and functions are those of NCCL, so that a program written for NCCL compiles
// unchanged; docs/nccl-compatibility.md says how each function differs. Each has a twin named pnccl... (the
// profiling alias): a preloaded tool may define ncclX itself and call pncclX. What NCCL 2.29 and 2.30 add,
// and the host functions of the device API, are in tutti/nccl_newer.h.
//
// A communicator works on the memory of the GPU that is current when it is made, with CUDA's streams; or,
// where there is none or TUTTI_DEVICE=host, on host memory: pointers are host pointers then, and a NULL
// stream means that the operation is complete when the call returns, or in a group when the outermost
// ncclGroupEnd returns. Host streams, for work that runs while the caller goes on, come from tutti/stream.h.
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
/// Symmetric memory of all ranks. Opaque.
typedef struct ncclWindow_vidmem* ncclWindow_t;
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

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT -1.0f

/// The colour of a rank that ncclCommSplit puts into no communicator.
#define NCCL_SPLIT_NOCOLOR -1

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_SHRINK_DEFAULT 0x00  ///< no operation is under way
#define NCCL_SHRINK_ABORT 0x01    ///< ends the operations that are, first

#define NCCL_REVOKE_DEFAULT 0x00  ///< there is no other

/// How a communicator is made and works. Initialize it with NCCL_CONFIG_INITIALIZER; the first three fields
/// are not the user's. A field that is left undefined has its default.
typedef struct ncclConfig_v22800 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  /// 1 (default): calls return when they are done. 0: calls that make or finalize communicators may return
  /// ncclInProgress and go on in the background until ncclCommGetAsyncError says otherwise.
  /// NCCL_COMM_BLOCKING goes before it.
  int blocking;
  // What follows is checked as NCCL does, but has nothing to act on where buffers are in host memory.
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                     \
  {                                                                                                 \
    sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),             \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                                               \
  }

/// What ncclGroupSimulateEnd found out. Initialize it with NCCL_SIM_INFO_INITIALIZER.
typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;  ///< microseconds; NCCL_UNDEF_FLOAT: not known
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
  { sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT, }

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

/// Where the scalar of ncclRedOpCreatePreMulSum is. On host memory both are host pointers.
typedef enum {
  ncclScalarDevice = 0,        ///< read when the operation is carried out; must live until then
  ncclScalarHostImmediate = 1  ///< read by ncclRedOpCreatePreMulSum
} ncclScalarResidence_t;

// Every function returns ncclSuccess or says what failed; ncclGetLastError then has the words.
// A call that is refused changes nothing, and the communicator stays usable: every ncclInvalidArgument, and
// the ncclInvalidUsage of what cannot be called like this (a function that is not supported, a second thread
// at once, a group that does not fit together). What goes wrong while an operation is carried out stays: the
// calls of the ranks differ (also ncclInvalidUsage), ncclRemoteError, ncclSystemError, ncclInternalError,
// ncclUnhandledCudaError. ncclCommGetAsyncError tells which it was. While that says ncclSuccess, and this
// rank has not called ncclCommRevoke, the communicator is usable; else every operation on it fails, on all
// ranks, and it can be asked, revoked, shrunk with NCCL_SHRINK_ABORT, aborted and destroyed. A split or
// shrink that fails leaves its parent as it is.
//
// One communicator is used by one thread at a time; different communicators are independent.
// ncclCommAbort may be called from any thread. What one thread calls between ncclGroupStart and ncclGroupEnd
// is carried out together at the end.

/// Version of the API as major * 10000 + minor * 100 + patch. TUTTI_NCCL_VERSION says another one, for
/// programs that look at it.
ncclResult_t ncclGetVersion(int* version);
ncclResult_t pncclGetVersion(int* version);

/// Static text for a result, never NULL.
const char* ncclGetErrorString(ncclResult_t result);
const char* pncclGetErrorString(ncclResult_t result);

/// Text of the last error that a call of this thread returned, or ncclCommGetAsyncError told it; in a thread
/// that has had none, of the last error of the process. Never NULL, at most 1023 characters; valid until the
/// calling thread asks again. `comm` is ignored and may be NULL.
const char* ncclGetLastError(ncclComm_t comm);
const char* pncclGetLastError(ncclComm_t comm);

/// Opens the rendezvous of one communicator in this process and describes it in *uniqueId. The process must
/// live until all ranks have joined.
ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId);
ncclResult_t pncclGetUniqueId(ncclUniqueId* uniqueId);

/// Joins the communicator of `nranks` ranks as `rank`; returns when all have joined. Ranks may be processes
/// or threads. On failure *comm is NULL. In a group the joining is done at its end, for all ranks of the
/// group at once, so that one thread can be several ranks; *comm may be used after it.
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);

/// The same with a configuration, which may be NULL. A non-blocking one (config->blocking = 0) returns
/// ncclInProgress with *comm set: until ncclCommGetAsyncError no longer says ncclInProgress, only that and
/// ncclCommAbort may be called. A group holds blocking or non-blocking joins, not both.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config);
ncclResult_t pncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t* config);

/// The same with several unique ids, in the same order on every rank: 1 to nranks of them. Tutti meets by the
/// first; a tree spreads the load without the others.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId* commIds, ncclConfig_t* config);

/// Makes all `ndev` ranks of a communicator in this process; comm[r] is rank r. devlist, if not NULL, holds
/// distinct numbers for ncclCommCuDevice; nothing else depends on them on host memory.
ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);
ncclResult_t pncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist);

/// Waits for the work that is queued on streams; no operation may follow. NULL is accepted; a second time is
/// ncclInvalidArgument. A non-blocking communicator may return ncclInProgress.
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommFinalize(ncclComm_t comm);

/// Waits for the work that is queued on streams, then frees the communicator. NULL is accepted; a handle that
/// is already destroyed is ncclInvalidArgument. Data that no call of this rank received is ncclInvalidUsage:
/// the ranks' calls differed; the communicator is freed all the same. While it is split or shrunk in the
/// background the handle ends at once, and the communicator after that.
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);

/// Ends an operation that another thread may be inside of, with ncclRemoteError there and on all other ranks,
/// then frees the communicator.
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);

/// Ends the operations that are under way, as ncclCommAbort does, but leaves the communicator: it can be
/// split, shrunk and destroyed. Operations and ncclCommFinalize are ncclInvalidUsage from here on. NULL is
/// accepted; flags other than 0, and a second time, are ncclInvalidArgument.
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);

/// Makes a communicator of the ranks that give the same colour (0 or more), numbered by key, then by their
/// rank in `comm`. All ranks of `comm` call it; one that gives NCCL_SPLIT_NOCOLOR gets NULL. With config NULL
/// the configuration of `comm` is taken over. Where `comm` is non-blocking it returns ncclInProgress:
/// *newcomm is a communicator that is still being made, and `comm` is in progress until the split is done.
/// One split or shrink of a communicator at a time: a second one in a group is ncclInvalidUsage.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);
ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config);

/// Makes a communicator of all ranks but the listed ones, in the old order. The listed ones do not call it,
/// and may be dead. NCCL_SHRINK_ABORT: first ends the operations of `comm`, on which nothing but
/// ncclCommDestroy and ncclCommAbort is possible afterwards. Otherwise like ncclCommSplit.
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);
ncclResult_t pncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);

/// First failure of the communicator, or ncclSuccess; ncclInProgress while it is being made or finalized in
/// the background. A rank that is in no operation hears of the others here: the error of one that failed or
/// aborted, ncclRemoteError for one whose process has ended without ncclCommDestroy. Both do not make an
/// operation fail for which all that it needs is there. May be polled, by any thread.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError);

/// Number of ranks.
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count);
ncclResult_t pncclCommCount(const ncclComm_t comm, int* count);

/// The number that ncclCommInitAll was given for this rank, else 0: host memory has no devices.
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int* device);

/// This rank's number, 0 to count - 1.
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int* rank);

/// Page-aligned host memory of `size` bytes (0 is accepted). Contents are zero. Once registered, ranks in
/// other processes read and write it in place.
ncclResult_t ncclMemAlloc(void** ptr, size_t size);
ncclResult_t pncclMemAlloc(void** ptr, size_t size);

/// Frees memory of ncclMemAlloc. NULL is accepted; any other pointer is ncclInvalidArgument; memory that is
/// still registered is ncclInvalidUsage.
ncclResult_t ncclMemFree(void* ptr);
ncclResult_t pncclMemFree(void* ptr);

/// Registers `size` bytes at `buff` with the communicator, on this rank alone: operations on them then need
/// no copy, where the memory is of ncclMemAlloc. Other memory is accepted and gains nothing. Registering a
/// byte twice is ncclInvalidUsage.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);
ncclResult_t pncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle);

/// Ends a registration. No operation may be using the buffer. Destroying the communicator ends all of them.
/// NULL is accepted; a handle of no registration is ncclInvalidUsage.
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void* handle);

/// Symmetric memory: Tutti has none, and says so as NCCL does where it has none: ncclSuccess, and *win is
/// NULL. NULL or empty buffers, unknown flags and a misaligned base are ncclInvalidArgument.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int winFlags);
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                     int winFlags);

/// Accepts NULL, the only window that there is.
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/// Reduces `count` elements of every rank's sendbuff into every rank's recvbuff; all ranks end with the same
/// bits. In place when sendbuff == recvbuff.
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                            ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/// The same with the result on the root only. recvbuff is looked at on the root only. In place when
/// sendbuff == recvbuff.
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);

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

/// The same in place, with one buffer. An old form of ncclBroadcast.
ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t pncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                        cudaStream_t stream);

/// Sends the `count` elements at sendbuff + p * count to each rank p, and leaves those of rank p at recvbuff
/// + p * count. In place when sendbuff == recvbuff, which NCCL does not have.
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                          ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream);

/// Leaves the `count` elements of rank r at recvbuff + r * count on the root. recvbuff is looked at on the
/// root only. In place when sendbuff == recvbuff + root * count there.
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         int root, ncclComm_t comm, cudaStream_t stream);

/// Leaves the `count` elements at sendbuff + r * count of the root on rank r. sendbuff is looked at on the
/// root only. In place when recvbuff == sendbuff + root * count there.
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                         int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                          int root, ncclComm_t comm, cudaStream_t stream);

/// Sends `count` elements to `peer`, which must call ncclRecv for as many bytes. Transfers of one pair of
/// ranks match in the order in which each side posts them. Those that need each other, such as both halves of
/// an exchange, belong into one group. A transfer to this rank itself needs its other half in the same group.
/// One of 0 elements is no transfer: the other side may post its half or leave it out.
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/// Receives what `peer` sends to this rank; see ncclSend.
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t pncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                       cudaStream_t stream);

/// Makes a reduction that multiplies this rank's contribution by *scalar, of type `datatype`, and then sums.
/// It serves this communicator and type only. It may be destroyed as soon as the last call that names it
/// returned.
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm);

/// Frees it. Built-in operations, those of other communicators and those already destroyed are
/// ncclInvalidArgument.
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/// Opens a group: until the outermost ncclGroupEnd, this thread's calls only check and record. Groups nest.
ncclResult_t ncclGroupStart(void);
ncclResult_t pncclGroupStart(void);

/// Closes it. The outermost carries out what was recorded, on any number of communicators: first joins, then
/// the operations, last finalizing and destroying. Of each communicator first the collectives run, in their
/// order, then the point-to-point transfers, all pairs at once. Returns the first error. If a recorded call
/// was refused, that is the group's error, and nothing is carried out. Without ncclGroupStart:
/// ncclInvalidUsage.
ncclResult_t ncclGroupEnd(void);
ncclResult_t pncclGroupEnd(void);

/// Closes a group as ncclGroupEnd does, but carries nothing out: what was recorded is forgotten, and
/// simInfo->estimatedTime says how long it would have taken, by a simple model of latency and bandwidth. The
/// outermost level counts: an inner one leaves *simInfo as it is. NULL, or one that was not initialized, is
/// ncclInvalidArgument; the group is closed all the same.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t* simInfo);

/// Of old versions of NCCL. Does nothing: NCCL_DEBUG is read once.
__attribute__((deprecated("NCCL removes it"))) void ncclResetDebugInit(void);
__attribute__((deprecated("NCCL removes it"))) void pncclResetDebugInit(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // NCCL_H_
