// A program's own kernel that breaks its GPU.
#include "tests/runtime/gpu_break.h"

namespace tutti::test {
namespace {

__global__ void trap() { __trap(); }

}  // namespace

void breakGpu() { trap<<<1, 1>>>(); }

}  // namespace tutti::test
