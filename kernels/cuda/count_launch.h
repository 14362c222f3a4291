// A kernel that tells the host of the next one, where a graph cannot call it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tutti {

/// Loads the kernel on the current device, so that no launch has to.
cudaError_t loadCountLaunch();

/// Queues one more launch: `launches`, in pinned host memory, grows by one (release). One at a time.
cudaError_t launchCountLaunch(std::uint64_t* launches, cudaStream_t stream);

}  // namespace tutti
