#include "tools/cuda_emulator/runtime/thread_state.h"

#include "tools/cuda_emulator/runtime/stream.h"

namespace tutti::emulator {

ThreadState& threadState() {
  thread_local ThreadState state;
  return state;
}

PerThreadStreams::~PerThreadStreams() {
  for (const auto& [device, stream] : by_device) stream->close();
}

}  // namespace tutti::emulator
