// Kernels that are broken on purpose, one bug each: what includes the kernels' own headers with one piece
// replaced.
#pragma once

#include "kernels/cuda/cuda_work.h"

// As the host sees them.
extern "C" {
void tuttiTransfers(tutti::CudaTransferArgs args);
void plantedNoBarrierBeforeFlag(tutti::CudaTransferArgs args);
void plantedNoBarrierAfterWait(tutti::CudaTransferArgs args);
void plantedRelaxedFlag(tutti::CudaTransferArgs args);
void plantedRelaxedWait(tutti::CudaTransferArgs args);
void plantedEarlyCredit(tutti::CudaTransferArgs args);
void plantedReusedFlag(tutti::CudaCollectiveArgs args);
}
