// Communicators that end while kernels of others run.
#include <latch>
#include <string>

#include "tests/harness/ranks.h"
#include "tests/harness/resources.h"
#include "tests/runtime/gpu_device.h"
#include "tests/runtime/gpu_scenarios.h"

namespace tutti::test {

/// Freeing waits for all kernels of a GPU, and this one waits for a thread that is about to free.
void destroyBesideAKernel() {
  const ncclUniqueId ends = newId();
  const ncclUniqueId stays = newId();
  std::latch launched(1);
  std::latch ended(2);
  for (const std::string& error : runThreads(2, [&](int rank) {
         checkCuda(cudaSetDevice(rank), "cudaSetDevice");
         Comm ending(2, ends, rank);
         Comm staying(2, stays, rank);
         const GpuStreamOfTest stream;
         const GpuArray<float> data(filled(3000, 1.0F));
         ending.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
         stream.synchronize();
         const auto launch = [&] {
           staying.allReduce(data.data(), data.data(), data.size(), ncclSum, stream);
         };
         if (rank == 0) {
           launch();
           launched.count_down();
         }
         launched.wait();
         const ncclResult_t result = ncclCommDestroy(ending.take());
         // The last to end has all to free.
         ended.arrive_and_wait();
         if (rank == 1) launch();
         check(result);
         requireAll(data, 4, "a sum of two ranks, twice");
       })) {
    require(error.empty(), error);
  }
}

void makeAndDestroyMany(int count) {
  const auto makeOne = [] {
    const ncclUniqueId id = newId();
    for (const std::string& error : runThreads(2, [&](int rank) {
           checkCuda(cudaSetDevice(rank), "cudaSetDevice");
           const Comm comm(2, id, rank);
         })) {
      require(error.empty(), error);
    }
  };
  // The first ones load libraries, and leave what the next one frees.
  for (int i = 0; i < 5; ++i) makeOne();
  const Resources before = Resources::after({}, std::chrono::milliseconds(500));
  for (int i = 0; i < count; ++i) makeOne();
  Resources after = Resources::after(before, std::chrono::seconds(10));
  for (int tries = 0; after.mappings > before.mappings + 20 && tries < 20; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    after = Resources::now();
  }
  const std::string counts = "before: " + before.text() + "; after: " + after.text();
  std::puts(counts.c_str());
  require(after.fds <= before.fds && after.threads <= before.threads, counts);
  if (!kCountsMemory) return;
  require(after.shared_mappings <= before.shared_mappings + 2, counts);
  require(after.mappings <= before.mappings + 20, counts);
}

}  // namespace tutti::test
