// planted_races KERNEL: two ranks, one of which sends a message of several slots to the other, by that
// kernel. Under ThreadSanitizer, which ends the program where it sees a race.
#include <cstdio>
#include <cstring>
#include <memory>

#include "collectives/planner.h"
#include "tests/kernels_cuda/cuda_world.h"
#include "tests/kernels_cuda/planted/planted.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kSlotBytes = 512;
constexpr std::uint64_t kBytes = 6 * kSlotBytes;
constexpr unsigned kThreads = 64;

using Kernel = void (*)(CudaTransferArgs);

struct Named {
  const char* name;
  Kernel kernel;
};

constexpr Named kKernels[] = {{"tuttiTransfers", tuttiTransfers},
                              {"plantedNoBarrierBeforeFlag", plantedNoBarrierBeforeFlag},
                              {"plantedNoBarrierAfterWait", plantedNoBarrierAfterWait},
                              {"plantedRelaxedFlag", plantedRelaxedFlag},
                              {"plantedRelaxedWait", plantedRelaxedWait},
                              {"plantedEarlyCredit", plantedEarlyCredit}};

/// One task for one block.
class Transfer {
 public:
  Transfer(const Plan& plan, CudaTask::Kind kind, int peer) : list_(64 + sizeof(CudaTask)), bytes_(kBytes) {
    list_.as<std::uint32_t>()[1] = 1;
    CudaTask task = collectiveTask(plan, bytes_.data(), bytes_.data());
    task.kind = kind;
    task.peer = peer;
    std::memcpy(list_.data() + 64, &task, sizeof task);
  }
  void launch(const CudaWorld& world, int rank, Kernel kernel) {
    CudaTransferArgs args{world.rank(rank), reinterpret_cast<CudaTask*>(list_.data() + 64),
                          list_.as<std::uint32_t>()};
    void* arguments[] = {&args};
    checkCuda(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(kThreads), arguments, 0,
                               world.stream(rank)),
              "a launch");
  }

 private:
  PinnedMemory list_;
  PinnedMemory bytes_;
};

void run(Kernel kernel) {
  constexpr LinkShape kShape{.lanes = 1, .slot_count = 2, .slot_bytes = kSlotBytes, .packet_bytes = 0};
  CudaWorld world(2, kShape);
  const Plan plan = makePointToPointPlan(transferDescriptor(kBytes), 2, kShape);
  Transfer send(plan, CudaTask::Kind::send, 1);
  Transfer receive(plan, CudaTask::Kind::receive, 0);
  send.launch(world, 0, kernel);
  receive.launch(world, 1, kernel);
  for (int r = 0; r < 2; ++r) world.wait(r);
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  for (const auto& [name, kernel] : tutti::test::kKernels) {
    if (argc != 2 || std::strcmp(argv[1], name) != 0) continue;
    tutti::test::run(kernel);
    return 0;
  }
  std::fprintf(stderr, "planted_races: no such kernel\n");
  return 2;
}
