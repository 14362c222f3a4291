// One operation that a rank was asked for: everything a call of the C API says, but the communicator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/core/descriptor.h"

namespace tutti {

/// The scalar of an operation from ncclRedOpCreatePreMulSum.
struct Scalar {
  std::array<std::byte, 8> value{};  ///< one element of the operation's type, from the front
  const void* at = nullptr;          ///< if set, it is read here when the operation is carried out

  const void* data() const { return at != nullptr ? at : value.data(); }
};

/// A value. The buffers are the caller's, who keeps them until the operation is complete.
struct Task {
  enum class Kind : std::uint8_t { collective, send, receive };

  Kind kind = Kind::collective;
  Descriptor descriptor{};
  const void* send = nullptr;
  void* recv = nullptr;
  int peer = -1;    ///< send, receive: the rank at the other end
  Scalar scalar{};  ///< collectives with RedOp::premul_sum
  // What messages about wrong arguments call it.
  const char* function = "";
  const char* send_name = "sendbuff";
  const char* recv_name = "recvbuff";
};

}  // namespace tutti
