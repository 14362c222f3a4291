// Where the ranks of one communicator meet: a listener and a thread in the process that made the unique id.
#pragma once

#include <chrono>
#include <cstdint>

#include "nccl.h"

namespace tutti {

/// Opens a rendezvous on the loopback interface (`port` 0: any free port) and starts its thread, which serves
/// one communicator: collects every rank, runs their all-gathers, tells all ranks the first failure, and ends
/// when the last has left, or `init_timeout` after the first came. Strangers are dropped and delay nobody.
/// Throws Error(ncclSystemError) naming the port when it is in use.
ncclUniqueId openRendezvous(std::uint16_t port, std::chrono::milliseconds init_timeout);

}  // namespace tutti
