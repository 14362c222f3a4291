#include "runtime/cuda/hardware_queues.h"

#include <fmt/format.h>

#include <cstdlib>

#include "tutti/error.h"

namespace tutti {

void requireHardwareQueues(int ranks_on_gpu) {
  const char* value = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (value == nullptr || ranks_on_gpu < 2) return;
  const long queues = std::strtol(value, nullptr, 10);
  if (queues <= 0 || queues >= ranks_on_gpu) return;
  throw Error(
      ncclInvalidUsage,
      fmt::format("CUDA_DEVICE_MAX_CONNECTIONS is {}, and {} ranks of this process share one GPU: their "
                  "kernels would wait for each other for ever. Set it to 8 or more, give each rank a GPU, "
                  "or run each rank in a process",
                  value, ranks_on_gpu));
}

}  // namespace tutti
