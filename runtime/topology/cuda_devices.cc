#include "runtime/topology/cuda_devices.h"

#include <fmt/format.h>

#include <array>

#include "runtime/core/shared_library.h"

namespace tutti {
namespace {

// cudaDeviceAttr's numbers.
constexpr int kMajor = 75;
constexpr int kMinor = 76;
constexpr int kReachedByRdma = 116;
constexpr int kHostNuma = 134;

struct Cuda {
  int (*count)(int*);
  int (*bus_id)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*properties)(void*, int);
  int (*can_access_peer)(int*, int, int);
  int (*last_error)();
  const char* (*error_text)(int);

  /// An error is not left behind for the program's own cudaGetLastError.
  bool succeeded(int error) const {
    if (error != 0) last_error();
    return error == 0;
  }
  int attributeOf(int attribute_number, int device, int otherwise) const {
    int value = otherwise;
    return succeeded(attribute(&value, attribute_number, device)) ? value : otherwise;
  }
};

Cuda find(SharedLibrary& library) {
  Cuda cuda{};
  library.find(cuda.count, "cudaGetDeviceCount");
  library.find(cuda.bus_id, "cudaDeviceGetPCIBusId");
  library.find(cuda.attribute, "cudaDeviceGetAttribute");
  library.find(cuda.properties, "cudaGetDeviceProperties");
  library.find(cuda.can_access_peer, "cudaDeviceCanAccessPeer");
  library.find(cuda.last_error, "cudaGetLastError");
  library.find(cuda.error_text, "cudaGetErrorString");
  return cuda;
}

CudaDevice deviceOf(const Cuda& cuda, int number) {
  CudaDevice device;
  std::array<char, 32> bus_id{};
  if (cuda.succeeded(cuda.bus_id(bus_id.data(), static_cast<int>(bus_id.size()), number)))
    device.bus_id = bus_id.data();
  device.compute_capability = cuda.attributeOf(kMajor, number, 0) * 10 + cuda.attributeOf(kMinor, number, 0);
  device.numa = cuda.attributeOf(kHostNuma, number, -1);
  device.reached_by_rdma = cuda.attributeOf(kReachedByRdma, number, 0) != 0;
  // The structure opens with 256 characters of name; no version of it is as large as this.
  alignas(16) std::array<char, 16384> properties{};
  if (cuda.succeeded(cuda.properties(properties.data(), number))) {
    properties[255] = 0;
    device.model = properties.data();
  }
  return device;
}

}  // namespace

CudaView askCuda() {
  SharedLibrary library({"libcudart.so.13"});
  const Cuda cuda = find(library);
  CudaView view{.problem = library.problem()};
  if (!view.problem.empty()) return view;
  int count = 0;
  const int error = cuda.count(&count);
  if (!cuda.succeeded(error)) {
    view.problem = fmt::format("cudaGetDeviceCount: {}", cuda.error_text(error));
    return view;
  }
  for (int device = 0; device < count; ++device) view.devices.push_back(deviceOf(cuda, device));
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      int there = 0;
      int back = 0;
      cuda.succeeded(cuda.can_access_peer(&there, a, b));
      cuda.succeeded(cuda.can_access_peer(&back, b, a));
      if (there == 0 || back == 0) view.without_peer_access.emplace_back(a, b);
    }
  }
  return view;
}

}  // namespace tutti
