// The one function that libtutti_cuda.so exports.
#include <string_view>

#include "runtime/core/accelerator.h"
#include "runtime/cuda/cuda_accelerator.h"

/// nullptr where the caller was built with another version of the interface. The same object at each call; it
/// is never destroyed: communicators may end after the program's static objects.
extern "C" __attribute__((visibility("default"))) tutti::Accelerator* tuttiOpenAccelerator(
    const char* version) {
  if (std::string_view(version) != tutti::kAcceleratorVersion) return nullptr;
  static auto* const kAccelerator = new tutti::CudaAccelerator;
  return kAccelerator;
}
