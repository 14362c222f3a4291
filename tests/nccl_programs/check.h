// What every program written for NCCL has in some form: calls that must succeed, and the id handed round.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                                        \
  do {                                                                                          \
    cudaError_t code_ = (call);                                                                 \
    if (code_ != cudaSuccess) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(code_)); \
      exit(EXIT_FAILURE);                                                                       \
    }                                                                                           \
  } while (0)

#define NCCL_CHECK(call)                                                                           \
  do {                                                                                             \
    ncclResult_t code_ = (call);                                                                   \
    if (code_ != ncclSuccess) {                                                                    \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, ncclGetErrorString(code_), \
              ncclGetLastError(nullptr));                                                          \
      exit(EXIT_FAILURE);                                                                          \
    }                                                                                              \
  } while (0)

#define REQUIRE(condition, ...)                                                 \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                             \
      fputc('\n', stderr);                                                      \
      exit(EXIT_FAILURE);                                                       \
    }                                                                           \
  } while (0)
