// C API: what carries a communicator's links to another rank.
#ifndef TUTTI_TRANSPORT_H_
#define TUTTI_TRANSPORT_H_

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  /// "self", the rank that asks; on host memory "inproc" (threads of one process) or "shm" (processes of one
  /// host); on GPUs "peer_access" (one process), "cuda_ipc" or "pinned" (by way of host memory); between
  /// hosts "tcp" or "verbs" (RDMA).
  char name[32];
  /// For people, may be empty: the RDMA ports that this rank may use, "RDMA (mlx5_0:1)".
  char details[224];
} tuttiTransport_t;

/// Fills *transport: how this rank reaches `peer`. Decided when the communicator was made; local, does not
/// wait. Errors: ncclInvalidArgument when comm is not a live communicator, `peer` is no rank of it, or
/// transport is NULL.
ncclResult_t tuttiCommTransport(ncclComm_t comm, int peer, tuttiTransport_t* transport);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TUTTI_TRANSPORT_H_
