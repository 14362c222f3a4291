// combine does not end with a barrier: thread 0 publishes a slot that others still fill.
#include "kernels/cuda/cuda_links.cuh"
#define allSay(yes) (yes)
#include "kernels/cuda/cuda_executor.cuh"
#undef allSay
#define tuttiTransfers plantedNoBarrierBeforeFlag
#include "kernels/cuda/transfers.cu"
