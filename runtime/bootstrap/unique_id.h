// What ncclUniqueId holds: where the rendezvous of a communicator is, and the secret that admits to it.
#pragma once

#include "nccl.h"
#include "runtime/core/net_address.h"
#include "transports/secure_channel.h"

namespace tutti {

/// The contents of an ncclUniqueId, position independent.
struct UniqueId {
  NetAddress address;      ///< of the rendezvous
  bool is_agreed = false;  ///< made from an address that all ranks know: rank 0 opens the rendezvous there
  Secret secret{};
};

ncclUniqueId encode(const UniqueId& id);

/// Throws Error(ncclInvalidArgument) when the bytes were not made by this version's encode or were damaged.
UniqueId decode(const ncclUniqueId& id);

}  // namespace tutti
