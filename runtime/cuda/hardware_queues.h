// Several ranks of a process on one GPU.
#pragma once

namespace tutti {

/// Throws Error where CUDA_DEVICE_MAX_CONNECTIONS is set too low for so many ranks of this process on one
/// GPU.
///
/// It is the number of queues by which work of a process gets to a GPU; streams share them. Work of one rank
/// waits for its earlier work; in a queue that is shared, everything behind it waits too. Where that is the
/// kernel of another rank which the earlier work waits for, both wait for ever. Unset, it is 8 at least. One
/// rank per GPU and process is safe with any value.
void requireHardwareQueues(int ranks_on_gpu);

}  // namespace tutti
