#include "kernels/host/simd_avx2.h"

// After the instruction set, which they are compiled for.
#include "kernels/host/combine_loops.h"

namespace tutti {

constinit const CombineTable kCombineAvx2 = makeCombineTable();

}  // namespace tutti
