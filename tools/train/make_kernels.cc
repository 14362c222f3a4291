#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "tools/device/plugin.h"
#include "tools/train/cuda_kernels.h"
#include "tutti/error.h"

namespace tutti::train {

template <class T>
std::unique_ptr<Kernels<T>> makeKernels(device::Device& device, cudaStream_t stream) {
  if (device.kind() == device::Kind::host) return makeHostKernels<T>(device);
  std::string why = "is of another version of Tutti than this program";
  const auto entry = device::pluginEntry<CudaKernelsEntry<T>>(
      "libtutti_train_cuda.so", std::is_same_v<T, float> ? kCudaKernelsFloat : kCudaKernelsDouble, &why);
  std::unique_ptr<Kernels<T>> kernels(entry == nullptr ? nullptr
                                                       : entry(device::kPluginVersion, &device, stream));
  if (kernels == nullptr) {
    throw Error(ncclSystemError, fmt::format("--device cuda: libtutti_train_cuda.so: {}", why));
  }
  return kernels;
}

template std::unique_ptr<Kernels<float>> makeKernels(device::Device&, cudaStream_t);
template std::unique_ptr<Kernels<double>> makeKernels(device::Device&, cudaStream_t);

}  // namespace tutti::train
