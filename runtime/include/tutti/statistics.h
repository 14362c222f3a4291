// C API: what a communicator has moved between ranks, counted by the rank that asks.
//
// "Payload" is the users' elements, also partial sums of them; headers, counters and packets' flags are not
// in it. Every byte that passes between two ranks is counted once, by the rank that moves it: so payload
// summed over all ranks is what crossed between them, by whatever transport. A ring or direct all-reduce
// of S bytes on n ranks moves 2 (n - 1) S in total, a one-shot one n (n - 1) S.
#ifndef TUTTI_STATISTICS_H_
#define TUTTI_STATISTICS_H_

#include <stdint.h>

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Counts since the communicator was made; they only grow.
typedef struct {
  uint64_t operations;             ///< collective calls that this rank completed, empty ones apart
  uint64_t slots_posted;           ///< slots that this rank published to other ranks, empty ones too
  uint64_t payload_slot_bytes;     ///< payload in those slots
  uint64_t payload_read_bytes;     ///< payload that this rank read in place from other ranks' memory
  uint64_t payload_written_bytes;  ///< results that this rank left with other ranks, in their memory or slots
  uint64_t reserved[3];            ///< 0
} tuttiStatistics_t;

/// Fills *statistics. Local, does not wait; any thread may ask at any time, also during an operation, whose
/// share may then be counted in part. Errors: ncclInvalidArgument when comm is not a live communicator or
/// statistics is NULL.
ncclResult_t tuttiCommStatistics(ncclComm_t comm, tuttiStatistics_t* statistics);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TUTTI_STATISTICS_H_
