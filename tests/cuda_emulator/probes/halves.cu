// 16- and 8-bit floats: every code converted, operations on pairs of codes.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace {

__device__ int threadNumber() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

}  // namespace

/// 65536 threads, one per code.
extern "C" __global__ void widenHalf(float* f16, float* bf16) {
  const int i = threadNumber();
  f16[i] = __half2float(__ushort_as_half(static_cast<unsigned short>(i)));
  bf16[i] = __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(i)));
}

/// Per input: f16 in four roundings, bf16 in four, of the float; f16 and bf16 of the double.
extern "C" __global__ void narrowFloat(unsigned short* out, const float* in, int count) {
  const int i = threadNumber();
  if (i >= count) return;
  const float x = in[i];
  const unsigned short results[] = {
      __half_as_ushort(__float2half_rn(x)),
      __half_as_ushort(__float2half_rz(x)),
      __half_as_ushort(__float2half_rd(x)),
      __half_as_ushort(__float2half_ru(x)),
      __bfloat16_as_ushort(__float2bfloat16_rn(x)),
      __bfloat16_as_ushort(__float2bfloat16_rz(x)),
      __bfloat16_as_ushort(__float2bfloat16_rd(x)),
      __bfloat16_as_ushort(__float2bfloat16_ru(x)),
      __half_as_ushort(__double2half(static_cast<double>(x) * 1.000000001)),
      __bfloat16_as_ushort(__double2bfloat16(static_cast<double>(x) * 1.000000001))};
  for (int which = 0; which < 10; ++which) out[which * count + i] = results[which];
}

/// Per input: e4m3 and e5m2 of the float, of the half nearest to it, and of a pair.
extern "C" __global__ void narrowToBytes(unsigned char* out, const float* in, int count) {
  const int i = threadNumber();
  if (i >= count) return;
  const float x = in[i];
  const __half half = __float2half_rn(x);
  const __nv_fp8x2_storage_t pair = __nv_cvt_float2_to_fp8x2(make_float2(x, -x), __NV_SATFINITE, __NV_E4M3);
  const unsigned char results[] = {__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3),
                                   __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2),
                                   __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E4M3),
                                   __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E5M2),
                                   static_cast<unsigned char>(pair),
                                   static_cast<unsigned char>(pair >> 8)};
  for (int which = 0; which < 6; ++which) out[which * count + i] = results[which];
}

/// 256 threads, one per code.
extern "C" __global__ void widenBytes(unsigned short* e4m3, unsigned short* e5m2) {
  const int i = threadNumber();
  e4m3[i] = __half_raw(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(i), __NV_E4M3)).x;
  e5m2[i] = __half_raw(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(i), __NV_E5M2)).x;
}

namespace {

template <class T>
__device__ void operate(T* out, T x, T y, T z, int i, int count) {
  const T results[] = {__hadd(x, y), __hsub(x, y),     __hmul(x, y),     __hfma(x, y, z), __hmin(x, y),
                       __hmax(x, y), __hmin_nan(x, y), __hmax_nan(x, y), __hneg(x),       __habs(x)};
  for (int which = 0; which < 10; ++which) out[which * count + i] = results[which];
}

}  // namespace

extern "C" __global__ void operateHalf(__half* out, const __half* a, const __half* b, const __half* c,
                                       int count) {
  const int i = threadNumber();
  if (i < count) operate(out, a[i], b[i], c[i], i, count);
}

extern "C" __global__ void operateBfloat16(__nv_bfloat16* out, const __nv_bfloat16* a, const __nv_bfloat16* b,
                                           const __nv_bfloat16* c, int count) {
  const int i = threadNumber();
  if (i < count) operate(out, a[i], b[i], c[i], i, count);
}

/// The same on two at a time: what each half gives must be what it gives alone.
extern "C" __global__ void operateHalfPairs(__half2* out, const __half2* a, const __half2* b,
                                            const __half2* c, int pairs) {
  const int i = threadNumber();
  if (i >= pairs) return;
  const __half2 results[] = {
      __hadd2(a[i], b[i]), __hsub2(a[i], b[i]), __hmul2(a[i], b[i]),     __hfma2(a[i], b[i], c[i]),
      __hmin2(a[i], b[i]), __hmax2(a[i], b[i]), __hmin2_nan(a[i], b[i]), __hmax2_nan(a[i], b[i]),
      __hneg2(a[i]),       __habs2(a[i])};
  for (int which = 0; which < 10; ++which) out[which * pairs + i] = results[which];
}

extern "C" __global__ void operateBfloat16Pairs(__nv_bfloat162* out, const __nv_bfloat162* a,
                                                const __nv_bfloat162* b, const __nv_bfloat162* c, int pairs) {
  const int i = threadNumber();
  if (i >= pairs) return;
  const __nv_bfloat162 results[] = {
      __hadd2(a[i], b[i]), __hsub2(a[i], b[i]), __hmul2(a[i], b[i]),     __hfma2(a[i], b[i], c[i]),
      __hmin2(a[i], b[i]), __hmax2(a[i], b[i]), __hmin2_nan(a[i], b[i]), __hmax2_nan(a[i], b[i]),
      __hneg2(a[i]),       __habs2(a[i])};
  for (int which = 0; which < 10; ++which) out[which * pairs + i] = results[which];
}
