// What the environment says about the emulated machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::emulator {

inline constexpr int kMaxDevices = 64;

/// Read once, at the first call into the runtime.
struct Settings {
  /// The machine's devices that this process sees, by their number there: TUTTI_EMULATED_GPUS of them (1
  /// where that is not set), or those that CUDA_VISIBLE_DEVICES lists, up to the first that is none.
  std::vector<int> devices;
  std::size_t device_bytes = 0;  ///< TUTTI_EMULATED_GPU_BYTES: memory of each device, 8 GiB by default
  bool peer_access = true;       ///< TUTTI_EMULATED_PEER_ACCESS=0: no device reaches another's memory
  bool host_nodes = true;        ///< TUTTI_EMULATED_HOST_NODES=0: graphs take no host functions
  bool check_leaks = false;      ///< TUTTI_EMULATOR_CHECK_LEAKS=1
  std::uint64_t machine = 0;     ///< equal in all processes of this (possibly pretended) host, until it boots
};

const Settings& settings();

}  // namespace tutti::emulator
