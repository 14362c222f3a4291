// All packets of a slot have the same flag, so that those of the last message pass for the next one.
#include "kernels/cuda/cuda_packets.cuh"
#define cudaPacketFlag(sequence, descriptor) 1U
#define tuttiCollectiveUInt32 plantedReusedFlag
#include "kernels/cuda/collective_uint32.cu"
