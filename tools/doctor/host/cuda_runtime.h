// The few calls of the CUDA runtime that the doctor makes, found at run time: nothing links against it.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace tutti::doctor {

struct CudaRuntime {
  using Handle = struct { std::array<std::byte, 64> bytes; };

  int (*driver_version)(int*);
  int (*runtime_version)(int*);
  int (*set_device)(int);
  int (*can_access_peer)(int*, int, int);
  int (*allocate)(void**, std::size_t);
  int (*free)(void*);
  int (*copy)(void*, const void*, std::size_t, int);
  int (*get_handle)(Handle*, void*);
  int (*open_handle)(void**, Handle, unsigned);
  int (*close_handle)(void*);
  const char* (*error_text)(int);
};

/// Opened once and never closed; nullptr, with the reason, where it is not there.
const CudaRuntime* cudaRuntime(std::string* why_not);

}  // namespace tutti::doctor
