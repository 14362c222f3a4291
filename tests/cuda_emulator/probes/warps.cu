// What the lanes of a warp do together.

extern "C" __global__ void shuffles(unsigned* out, const unsigned* in, int width, int by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned all = gridDim.x * blockDim.x;
  const unsigned mask = 0xffffffff;
  out[i] = __shfl_up_sync(mask, in[i], by, width);
  out[all + i] = __shfl_down_sync(mask, in[i], by, width);
  out[2 * all + i] = __shfl_xor_sync(mask, in[i], by, width);
  out[3 * all + i] = __shfl_sync(mask, in[i], by, width);
  const unsigned long long wide = (static_cast<unsigned long long>(in[i]) << 32) | i;
  out[4 * all + i] = static_cast<unsigned>(__shfl_down_sync(mask, wide, by, width) >> 32);
}

/// Even and odd lanes apart, in branches of their own.
extern "C" __global__ void votes(unsigned* out, const unsigned* in) {
  const unsigned i = threadIdx.x;
  if (i % 2 == 0) {
    out[4 * i] = __ballot_sync(0x55555555, in[i] & 1);
    out[4 * i + 1] = static_cast<unsigned>(__any_sync(0x55555555, in[i] & 2));
    out[4 * i + 2] = static_cast<unsigned>(__all_sync(0x55555555, in[i] & 4));
  } else {
    out[4 * i] = __ballot_sync(0xaaaaaaaa, in[i] & 1);
    out[4 * i + 1] = static_cast<unsigned>(__any_sync(0xaaaaaaaa, in[i] & 2));
    out[4 * i + 2] = static_cast<unsigned>(__all_sync(0xaaaaaaaa, in[i] & 4));
  }
  __syncwarp();
  int all_same = 0;
  out[4 * i + 3] = __match_any_sync(0xffffffff, in[i] % 5);
  __match_all_sync(0xffffffff, in[i] % 5, &all_same);
  out[4 * i + 3] += static_cast<unsigned>(all_same);
}

extern "C" __global__ void reductions(unsigned* out, const unsigned* in) {
  const unsigned i = threadIdx.x;
  const unsigned mask = 0xffffffff;
  const unsigned results[] = {__reduce_add_sync(mask, in[i]),
                              __reduce_min_sync(mask, in[i]),
                              __reduce_max_sync(mask, in[i]),
                              __reduce_and_sync(mask, in[i]),
                              __reduce_or_sync(mask, in[i]),
                              __reduce_xor_sync(mask, in[i]),
                              static_cast<unsigned>(__reduce_min_sync(mask, static_cast<int>(in[i]))),
                              static_cast<unsigned>(__reduce_max_sync(mask, static_cast<int>(in[i])))};
  for (int k = 0; k < 8; ++k) out[8 * i + k] = results[k];
}

/// A sum over a block whose last warp is not whole, some lanes of which have left.
extern "C" __global__ void partialWarp(unsigned* out, unsigned leave_from) {
  const unsigned i = threadIdx.x;
  if (i >= leave_from) return;
  unsigned sum = i;
  for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffff, sum, by);
  out[i] = sum;
}

extern "C" __global__ void blockVotes(int* out, const int* in) {
  const int i = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(in[i] & 1);
  const int any = __syncthreads_or(in[i] & 2);
  const int all = __syncthreads_and(in[i] & 4);
  out[3 * i] = count;
  out[3 * i + 1] = any != 0;
  out[3 * i + 2] = all != 0;
}
