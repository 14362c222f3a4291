// C API: what the launcher told this process.
//
// `tutti-run -n N PROGRAM` starts N processes and gives each of them, in its environment,
//   TUTTI_RANK, TUTTI_WORLD_SIZE   its rank and the number of ranks
//   TUTTI_ID_FILE                  a file, readable by this user only, that holds the ncclUniqueId (128
//   bytes)
// (RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE are set too, for programs that look for those.)
//
// Other launchers give a rank and a size only. The first of these that is set counts:
//   RANK, WORLD_SIZE                                torchrun
//   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE      mpirun of Open MPI
//   PMI_RANK, PMI_SIZE                              mpirun of MPICH and relatives
//   SLURM_PROCID, SLURM_NTASKS                      srun
// The ranks then meet at an address that all of them know, where rank 0 listens:
//   NCCL_COMM_ID                  HOST:PORT or [IPv6]:PORT, or else
//   MASTER_ADDR, MASTER_PORT      that host, and the port after MASTER_PORT: torchrun's own store has that
//   one
// Who knows the address is admitted by TUTTI_SECRET_FILE, the same file on all hosts, or TUTTI_INSECURE=1
// where everybody on the network is trusted. One process alone (size 1) needs neither address nor secret.
#ifndef TUTTI_LAUNCH_H_
#define TUTTI_LAUNCH_H_

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int rank;
  int nranks;
  ncclUniqueId id;
} tuttiLaunch_t;

/// Fills *launch from the environment. Without a launcher this process is rank 0 of 1, with an id of its own.
/// Errors: ncclInvalidUsage when a variable is missing or wrong, ncclSystemError when the id file cannot be
/// read or a host name not be resolved; all name the variable or file.
ncclResult_t tuttiLaunchFromEnvironment(tuttiLaunch_t* launch);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TUTTI_LAUNCH_H_
