// Groups of work on GPUs.
#include <cstring>
#include <string>
#include <vector>

#include "tests/runtime/gpu_device.h"
#include "tests/runtime/gpu_scenarios.h"

namespace tutti::test {
namespace {

/// A second communicator of the same ranks.
Comm another(Comm& comm) {
  ncclUniqueId id{};
  if (comm.rank() == 0) check(ncclGetUniqueId(&id));
  std::vector<std::uint8_t> bytes(sizeof(id));
  std::memcpy(bytes.data(), &id, sizeof(id));
  const GpuArray<std::uint8_t> shared(bytes);
  check(ncclBcast(shared.data(), sizeof(id), ncclUint8, 0, comm.handle(), nullptr));
  bytes = shared.get();
  std::memcpy(&id, bytes.data(), sizeof(id));
  return Comm(comm.size(), id, comm.rank());
}

/// Both communicators on one stream, where a kernel waits for those before it: every rank names them in an
/// order of its own.
void crossCommunicators(Comm& comm) {
  Comm second = another(comm);
  const GpuStreamOfTest stream;
  const GpuArray<float> a(filled(3000, 1.0F));
  const GpuArray<float> b(filled(3000, 2.0F));
  float sum = 1;
  for (int round = 0; round < 3; ++round) {
    Group group;
    for (int i = 0; i < 2; ++i) {
      const bool is_first = (comm.rank() + round + i) % 2 == 0;
      const GpuArray<float>& data = is_first ? a : b;
      (is_first ? comm : second).allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
    }
    group.end();
    sum *= static_cast<float>(comm.size());
  }
  stream.synchronize();
  requireAll(a, sum, "the first communicator");
  requireAll(b, 2 * sum, "the second communicator");
}

/// The scalar is read on the GPU when the operation runs, and the operation may be destroyed before.
void scaleByTheGpu(Comm& comm) {
  const GpuStreamOfTest stream;
  const GpuArray<float> scalar(filled(1, 0.0F));
  const GpuArray<float> data(filled(5000, 2.0F));
  const GpuArray<float> later(filled(1, static_cast<float>(comm.rank() + 1)));
  ncclRedOp_t op{};
  check(ncclRedOpCreatePreMulSum(&op, scalar.data(), ncclFloat, ncclScalarDevice, comm.handle()));
  checkCuda(cudaMemcpyAsync(scalar.data(), later.data(), sizeof(float), cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpyAsync");
  comm.allReduce(data.data(), data.data(), data.size(), op, stream);
  check(ncclRedOpDestroy(op, comm.handle()));
  stream.synchronize();
  requireAll(data, 2 * sumOfRanks(comm.size()), "scaled by the GPU's scalar");
}

/// Work that is recorded and work that is not cannot be launched together.
void mixCaptured(Comm& comm) {
  const GpuStreamOfTest captured;
  const GpuStreamOfTest eager;
  const GpuArray<float> data(filled(100, 1.0F));
  const GpuArray<float> sum(100);
  checkCuda(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  check(ncclGroupStart());
  comm.allReduce(data.data(), sum.data(), 100, ncclSum, captured);
  comm.allReduce(data.data(), sum.data(), 100, ncclSum, eager);
  const ncclResult_t result = ncclGroupEnd();
  const std::string said = ncclGetLastError(nullptr);
  cudaGraph_t graph = nullptr;
  checkCuda(cudaStreamEndCapture(captured, &graph), "cudaStreamEndCapture");
  cudaGraphDestroy(graph);
  require(result == ncclInvalidUsage, "captured and eager work in one group: " + said);
  require(said.find("being captured") != std::string::npos, said);
  comm.allReduce(data.data(), sum.data(), 100, ncclSum, eager);
  eager.synchronize();
  requireAll(sum, static_cast<float>(comm.size()), "after the refusal");
}

}  // namespace

void useGroups(Comm& comm) {
  crossCommunicators(comm);
  scaleByTheGpu(comm);
  mixCaptured(comm);
}

}  // namespace tutti::test
