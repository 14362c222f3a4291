// C API: what the launcher told this process.
//
// `tutti-run -n N PROGRAM` starts N processes and gives each of them, in its environment,
//   TUTTI_RANK, TUTTI_WORLD_SIZE   its rank and the number of ranks
//   TUTTI_ID_FILE                  a file, readable by this user only, that holds the ncclUniqueId (128
//   bytes)
// (RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE are set too, for programs that look for those.)
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
/// read; both name the variable or file.
ncclResult_t tuttiLaunchFromEnvironment(tuttiLaunch_t* launch);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TUTTI_LAUNCH_H_
