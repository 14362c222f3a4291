// Thread 0 waits for a slot, and no barrier holds the others back. Both that do are missing: that of await,
// and the one behind which combine begins to move.
#include "tests/kernels_cuda/planted/transfers.cuh"

namespace tutti::test {

struct Hasty : CudaExecutor<Bytes> {
  __device__ bool await(Inbound in) {
    CudaLinkEnd& end = inbound_[in.index];
    const auto* posted = wordOf(end.view.posted->value);
    return threadIdx.x != 0 || waitUntil(end.view.peer, [&] { return loadAcquire(posted) > end.sequence; });
  }
  __device__ bool combine(const Operands& dsts, const Operands& srcs, std::uint64_t n, Last last) {
    if (srcs[0].where != Operand::Where::inbound_slot)
      return CudaExecutor<Bytes>::combine(dsts, srcs, n, last);
    const CudaLinkEnd& end = inbound_[srcs[0].link];
    const std::byte* slot = end.view.slot(end.sequence);
    for (std::uint64_t i = threadIdx.x; i < n; i += blockDim.x) task_.output[dsts[0].offset + i] = slot[i];
    return allSay(true);
  }
};

}  // namespace tutti::test

extern "C" __global__ void plantedNoBarrierAfterWait(const __grid_constant__ tutti::CudaTransferArgs args) {
  tutti::test::runTransfers<tutti::test::Hasty>(args);
}
