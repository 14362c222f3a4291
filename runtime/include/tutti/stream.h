// C API: host streams, what CUDA streams are for operations on host memory.
//
// An operation on a NULL stream is complete when its call returns, in a group when the outermost ncclGroupEnd
// returns. On a stream the call returns at once; the work runs in the order of the stream, on the stream's
// thread. All work of one communicator runs in the order in which it was issued, whatever streams it is on. A
// group on several streams runs when all of them have reached it. Buffers belong to the work until it is
// done.
//
// Work that fails leaves its error on the communicator (ncclCommGetAsyncError) and on the stream.
#ifndef TUTTI_STREAM_H_
#define TUTTI_STREAM_H_

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Passed wherever the API takes a cudaStream_t; of no use to CUDA.
typedef cudaStream_t tuttiStream_t;

/// Makes a stream with a thread of its own.
ncclResult_t tuttiStreamCreate(tuttiStream_t* stream);

/// Waits for the work that is queued, then frees the stream. NULL is accepted; a handle that is already
/// destroyed is ncclInvalidArgument. Not to be called by a thread while another still issues work on the
/// stream.
ncclResult_t tuttiStreamDestroy(tuttiStream_t stream);

/// Waits for the work that was queued before the call, with the deadlines that every operation has. Returns
/// the first error of the stream since the last synchronization, and clears it.
ncclResult_t tuttiStreamSynchronize(tuttiStream_t stream);

/// ncclInProgress while work is queued; else the first error since the last synchronization, or ncclSuccess.
ncclResult_t tuttiStreamQuery(tuttiStream_t stream);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TUTTI_STREAM_H_
