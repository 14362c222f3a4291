#include "runtime/cuda/task_lists.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr std::size_t kLeastBytes = 16 << 10;

bool isDone(cudaEvent_t event) { return succeeded(cudaEventQuery(event)); }

}  // namespace

TaskLists::List& TaskLists::take(std::size_t tasks, std::size_t queues) {
  const std::size_t bytes = tasks * sizeof(CudaTask) + (queues + 1) * sizeof(std::uint32_t);
  const auto is_free = [bytes](const auto& list) {
    return !list->is_captured && list->bytes >= bytes && isDone(list->done.get());
  };
  auto found = std::ranges::find_if(lists_, is_free);
  if (found == lists_.end()) {
    auto made = std::make_unique<List>();
    made->bytes = std::max(bytes, kLeastBytes);
    // First, because it may fail: to free the memory again would wait for kernels, also for those of other
    // ranks of the process, which wait for this launch.
    made->done = makeEvent();
    made->memory = allocatePinned(made->bytes, "a list of transfers");
    found = lists_.insert(lists_.end(), std::move(made));
  }
  List& list = **found;
  list.tasks = reinterpret_cast<CudaTask*>(list.memory.get());
  list.first = reinterpret_cast<std::uint32_t*>(list.tasks + tasks);
  return list;
}

void TaskLists::launched(List& list, cudaStream_t stream, bool is_captured) {
  list.is_captured = is_captured;
  if (!is_captured) checkCuda(cudaEventRecord(list.done.get(), stream), "cudaEventRecord");
}

void TaskLists::abandon() noexcept {
  for (const auto& list : lists_) {
    list->memory.get_deleter().is_registered = false;
    static_cast<void>(list->done.release());
  }
}

}  // namespace tutti
