#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/nccl_conformance/memory.h"

namespace conformance {

int mostRanks() { return 8; }
bool isSlow() { return false; }
void takeDevice(int) {}

void* allocate(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) { std::free(memory); }
/// memcpy may not be given NULL, not even for 0 bytes.
void copyIn(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
void copyOut(void* to, const void* from, std::size_t bytes) { copyIn(to, from, bytes); }

cudaStream_t openStream() { return nullptr; }
void closeStream(cudaStream_t) {}
void synchronize(cudaStream_t) {}

}  // namespace conformance
