// C API: what a communicator has moved between ranks, counted by the rank that asks.
//
// "Payload" is the users' elements, also partial sums of them; headers, counters and packets' flags are not
// in it. Every byte that passes between two ranks is counted once, by the rank that moves it: between hosts
// the one that sends it, inside a host the one that copies it. So payload summed over all ranks (slots + read
// + written) is what crossed between them, by whatever transport.
//
// An all-reduce of S bytes on n ranks, m on each of h hosts, moves in total, and of that between hosts:
//
//   ring           2 (n - 1) S    2 (n - 1) h / n S   h of its n links, with 2 (n - 1) / n S on each
//   direct         2 (n - 1) S    2 (n - m) S         each part goes to its rank and back, from n - m others
//   one-shot       n (n - 1) S    n (n - m) S         each input goes to n - m ranks of other hosts
//   hierarchical   2 (n - 1) S    2 (h - 1) S         h - 1 sums of each part, then as many results
//
// The ring's share between hosts is exact where its n blocks are equal, and hosts hold consecutive ranks.
// What is sent again after a lost connection is not counted again.
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
  uint64_t payload_slot_bytes;     ///< payload in those slots, or sent to another host for them
  uint64_t payload_read_bytes;     ///< payload that this rank read in place from other ranks' memory
  uint64_t payload_written_bytes;  ///< results that this rank left with other ranks, in their memory or slots
  uint64_t payload_network_bytes;  ///< of payload in slots and written: what went to ranks on other hosts
  uint64_t altered_slots;          ///< slots from other hosts that came altered, and were asked for again
  uint64_t reserved[1];            ///< 0
} tuttiStatistics_t;

/// Fills *statistics. Local, does not wait; any thread may ask at any time, also during an operation, whose
/// share may then be counted in part. Errors: ncclInvalidArgument when comm is not a live communicator or
/// statistics is NULL.
ncclResult_t tuttiCommStatistics(ncclComm_t comm, tuttiStatistics_t* statistics);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TUTTI_STATISTICS_H_
