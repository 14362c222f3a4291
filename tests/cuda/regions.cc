// Buffers that peers work on in place.
#include <fmt/format.h>

#include <vector>

#include "tests/cuda/scenarios.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 40'000;
constexpr std::size_t kBytes = kCount * sizeof(std::int32_t);
constexpr std::size_t kOffset = 4096;

/// Sums rank + i over the ranks, in buffers that lie in `regions`.
void reduceAndCheck(TestRank& rank, std::byte* at, std::uint32_t region) {
  std::vector<std::int32_t> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<std::int32_t>(i) + rank.rank();
  checkCuda(cudaMemcpyAsync(at, values.data(), kBytes, cudaMemcpyHostToDevice, rank.stream()), "to the GPU");
  const Descriptor descriptor{.collective = Collective::all_reduce, .type = DataType::int32, .count = kCount};
  GpuTask task = rank.task(descriptor, at, at);
  task.may_lend = true;
  task.input_region = task.output_region = {.number = region, .offset = kOffset};
  rank.gpu().launchCollective(task, rank.stream());
  rank.synchronize();
  checkCuda(cudaMemcpy(values.data(), at, kBytes, cudaMemcpyDeviceToHost), "from the GPU");
  const int n = rank.nranks();
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::int32_t expected = n * static_cast<std::int32_t>(i) + n * (n - 1) / 2;
    require(values[i] == expected, fmt::format("element {} is {} instead of {}", i, values[i], expected));
  }
}

}  // namespace

namespace {

/// A region of `memory` from `at` on: published, used in place, withdrawn, passed through slots.
void useRegion(TestRank& rank, std::byte* at) {
  GpuRank& gpu = rank.gpu();
  std::string note;
  const std::uint32_t region = gpu.publish(at, kOffset + kBytes, &note);
  require(region != 0, "not published: " + note);
  rank.barrier();
  gpu.meetRegions();
  rank.barrier();
  const std::uint64_t read_before = gpu.moved().read_bytes;
  reduceAndCheck(rank, at + kOffset, region);
  require(gpu.moved().read_bytes > read_before, "nothing was read in place");
  rank.barrier();
  // All withdraw at the same time, and go on closing what the others withdraw.
  auto& closed = rank.board().ranks[0].note;
  require(gpu.withdraw(region, std::chrono::seconds(30)), "peers have not closed the region");
  closed.fetch_add(1);
  rank.board().waitFor([&] {
    gpu.meetRegions();
    return closed.load() % static_cast<std::uint64_t>(rank.nranks()) == 0;
  });
  rank.barrier();
  reduceAndCheck(rank, at + kOffset, 0);
  rank.barrier();
}

}  // namespace

void registeredBuffers(TestRank& rank) {
  auto* memory = static_cast<std::byte*>(rank.accelerator().allocate(kOffset + kBytes));
  useRegion(rank, memory);
  require(rank.accelerator().free(memory), "free");
}

void ownMemory(TestRank& rank) {
  const DeviceBuffer memory(3 * kOffset + kBytes);
  useRegion(rank, memory.data() + 2 * kOffset);
  // Other memory in the same place of the table.
  for (int i = 0; i < 70; ++i) useRegion(rank, memory.data() + kOffset);
}

void foreignMemory(TestRank& rank) {
  GpuRank& gpu = rank.gpu();
  std::string note;
  void* pooled = nullptr;
  checkCuda(cudaMallocAsync(&pooled, kBytes, rank.stream()), "cudaMallocAsync");
  require(gpu.publish(pooled, kBytes, &note) == 0, "memory of a pool was published");
  require(note.find("pool") != std::string::npos, note);
  checkCuda(cudaFreeAsync(pooled, rank.stream()), "cudaFreeAsync");
  void* pinned = nullptr;
  checkCuda(cudaMallocHost(&pinned, kBytes), "cudaMallocHost");
  require(gpu.publish(pinned, kBytes, &note) == 0, "host memory was published");
  require(rank.accelerator().inspect(pinned).kind == PointerInfo::Kind::pinned, "pinned memory");
  checkCuda(cudaFreeHost(pinned), "cudaFreeHost");
  int local = 0;
  require(gpu.publish(&local, sizeof(local), &note) == 0, "the stack was published");
  require(rank.accelerator().inspect(&local).kind == PointerInfo::Kind::host, "host memory");
  const bool is_freed = rank.accelerator().free(&local);  // NOLINT(clang-analyzer-unix.Malloc): it refuses
  require(!is_freed, "what was not allocated was freed");
  void* managed = nullptr;
  checkCuda(cudaMallocManaged(&managed, kBytes), "cudaMallocManaged");
  require(gpu.publish(managed, kBytes, &note) == 0, "managed memory was published");
  require(rank.accelerator().inspect(managed).kind == PointerInfo::Kind::managed, "managed memory");
  checkCuda(cudaFree(managed), "cudaFree");
  require(cudaPeekAtLastError() == cudaSuccess, "an error was left to the program");
}

}  // namespace tutti::test
