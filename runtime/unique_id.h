// What ncclUniqueId holds: where the rendezvous of a communicator is, and the secret that admits to it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "nccl.h"
#include "transports/secure_channel.h"

namespace tutti {

/// The contents of an ncclUniqueId, position independent.
struct UniqueId {
  std::uint16_t port = 0;               ///< TCP
  std::array<std::uint8_t, 4> address;  ///< IPv4, network order
  Secret secret{};

  /// "127.0.0.1:4711", for messages.
  std::string endpoint() const;
};

ncclUniqueId encode(const UniqueId& id);

/// Throws Error(ncclInvalidArgument) when the bytes were not made by this version's encode or were damaged.
UniqueId decode(const ncclUniqueId& id);

}  // namespace tutti
