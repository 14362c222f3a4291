// Every operation of operations.h on every triple of inputs, and conversions with each rounding.
#include "tests/cuda_emulator/probes/operations.h"

using probe::s64;
using probe::u64;

extern "C" __global__ void integers(u64* out, const u64* a, const u64* b, const u64* c, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  for (int which = 0; which < probe::kIntegerOperations; ++which) {
    out[which * count + i] = probe::integerOperation(which, a[i], b[i], c[i]);
  }
}

extern "C" __global__ void singles(float* out, const float* a, const float* b, const float* c, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  for (int which = 0; which < probe::kSingleOperations; ++which) {
    out[which * count + i] = probe::singleOperation(which, a[i], b[i], c[i]);
  }
}

extern "C" __global__ void doubles(double* out, const double* a, const double* b, const double* c,
                                   int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  for (int which = 0; which < probe::kDoubleOperations; ++which) {
    out[which * count + i] = probe::doubleOperation(which, a[i], b[i], c[i]);
  }
}

/// Four results per operation: to the nearest, to zero, down, up.
extern "C" __global__ void roundings(float* out, const float* a, const float* b, const float* c, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const float x = a[i], y = b[i], z = c[i];
  const float results[] = {__fadd_rn(x, y),    __fadd_rz(x, y),    __fadd_rd(x, y),    __fadd_ru(x, y),
                           __fmul_rn(x, y),    __fmul_rz(x, y),    __fmul_rd(x, y),    __fmul_ru(x, y),
                           __fdiv_rn(x, y),    __fdiv_rz(x, y),    __fdiv_rd(x, y),    __fdiv_ru(x, y),
                           __fsqrt_rn(x),      __fsqrt_rz(x),      __fsqrt_rd(x),      __fsqrt_ru(x),
                           __fmaf_rn(x, y, z), __fmaf_rz(x, y, z), __fmaf_rd(x, y, z), __fmaf_ru(x, y, z)};
  for (int which = 0; which < 20; ++which) out[which * count + i] = results[which];
}

extern "C" __global__ void toIntegers(s64* out, const float* a, const double* b, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const float x = a[i];
  const double y = b[i];
  const s64 results[] = {__float2int_rn(x),
                         __float2int_rz(x),
                         __float2int_rd(x),
                         __float2int_ru(x),
                         __float2ll_rn(x),
                         __float2ll_rz(x),
                         __float2ll_rd(x),
                         __float2ll_ru(x),
                         __double2int_rn(y),
                         __double2int_rz(y),
                         __double2int_rd(y),
                         __double2int_ru(y),
                         __double2ll_rn(y),
                         __double2ll_rz(y),
                         __double2ll_rd(y),
                         __double2ll_ru(y),
                         static_cast<s64>(__float2uint_rz(x)),
                         static_cast<s64>(__float2ull_rz(x))};
  for (int which = 0; which < 18; ++which) out[which * count + i] = results[which];
}

extern "C" __global__ void fromIntegers(float* out, const s64* a, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const s64 x = a[i];
  const int y = static_cast<int>(x);
  const float results[] = {__ll2float_rn(x),  __ll2float_rz(x),  __ll2float_rd(x),  __ll2float_ru(x),
                           __int2float_rn(y), __int2float_rz(y), __int2float_rd(y), __int2float_ru(y)};
  for (int which = 0; which < 8; ++which) out[which * count + i] = results[which];
}
