#include "tools/cuda_emulator/runtime/thread_state.h"

#include <utility>

#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {
namespace {

// A plain pointer, because a program's static objects may still call CUDA when the thread's have gone.
thread_local ThreadState* current = nullptr;

struct Owner {
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { delete std::exchange(current, nullptr); }
};

}  // namespace

ThreadState& threadState() {
  if (current == nullptr) {
    thread_local const Owner owner;
    current = new ThreadState;
  }
  return *current;
}

PerThreadStreams::~PerThreadStreams() {
  for (const auto& [device, stream] : by_device) stream->close();
}

}  // namespace tutti::emulator
