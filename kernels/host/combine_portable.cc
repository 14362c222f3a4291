#include "kernels/host/simd_portable.h"

// After the instruction set, which they are compiled for.
#include "kernels/host/combine_loops.h"

namespace tutti {

constinit const CombineTable kCombinePortable = makeCombineTable();

}  // namespace tutti
