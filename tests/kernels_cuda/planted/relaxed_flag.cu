// The flag of a slot is stored without an order.
#include "kernels/cuda/cuda_lane.cuh"
#define storeRelease storeRelaxed
#include "kernels/cuda/cuda_links.cuh"
#undef storeRelease
#define tuttiTransfers plantedRelaxedFlag
#include "kernels/cuda/transfers.cu"
