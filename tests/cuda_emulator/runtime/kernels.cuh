// Kernels that the tests of the emulated CUDA runtime launch.
#pragma once

namespace tutti::test {

/// Also for words that others wait for.
static __global__ void storeWord(int* word, int value) {
  asm volatile("st.release.sys.global.s32 [%0], %1;" : : "l"(word), "r"(value) : "memory");
}

static __global__ void addOne(int* word) { *word += 1; }

/// Waits until the word has that value.
static __global__ void awaitWord(int* word, int value) {
  int seen = 0;
  do {
    asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
  } while (seen != value);
}

}  // namespace tutti::test
