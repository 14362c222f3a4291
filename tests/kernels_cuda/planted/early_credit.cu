// A slot is given back before it is read.
#include "tests/kernels_cuda/planted/transfers.cuh"

namespace tutti::test {

struct Generous : CudaExecutor<Bytes> {
  __device__ bool await(Inbound in) {
    if (!CudaExecutor<Bytes>::await(in)) return false;
    CudaLinkEnd& end = inbound_[in.index];
    if (threadIdx.x == 0) storeRelease(wordOf(end.view.released->value), end.sequence + 1);
    return true;
  }
  __device__ void release(Inbound in) {
    if (threadIdx.x == 0) ++inbound_[in.index].sequence;
  }
};

}  // namespace tutti::test

extern "C" __global__ void plantedEarlyCredit(const __grid_constant__ tutti::CudaTransferArgs args) {
  tutti::test::runTransfers<tutti::test::Generous>(args);
}
