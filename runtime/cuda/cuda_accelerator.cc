#include "runtime/cuda/cuda_accelerator.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "runtime/cuda/cuda_block.h"
#include "runtime/cuda/cuda_gpu_rank.h"
#include "transports/cuda_ipc/cuda_call.h"
#include "transports/cuda_ipc/cuda_links.h"

namespace tutti {
namespace {

/// As a person would write a version: 13000 is 13.0.
std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

std::string driverHint() {
  int driver = 0;
  int runtime = 0;
  succeeded(cudaDriverGetVersion(&driver));
  succeeded(cudaRuntimeGetVersion(&runtime));
  if (driver == 0) {
    return "no NVIDIA driver (libcuda.so.1) is visible here; containers get one by --gpus";
  }
  return fmt::format("the NVIDIA driver knows CUDA {}, and this is made for CUDA {}: update the driver",
                     version(driver), version(runtime));
}

/// What to look at, where there is no GPU that can be used.
std::string hint(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice: {
      const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
      return visible == nullptr ? "nvidia-smi shows the GPUs of the machine; containers get them by --gpus"
                                : fmt::format("CUDA_VISIBLE_DEVICES is \"{}\"", visible);
    }
    case cudaErrorInsufficientDriver:
      return driverHint();
    case cudaErrorSystemNotReady:
      return "does the fabric manager of this machine run (nvidia-fabricmanager)?";
    case cudaErrorSystemDriverMismatch:
      return "the driver's library and kernel module differ: restart the machine after an update";
    default:
      return "nvidia-smi may know more";
  }
}

PointerInfo::Kind kindOf(cudaMemoryType type) {
  switch (type) {
    case cudaMemoryTypeHost:
      return PointerInfo::Kind::pinned;
    case cudaMemoryTypeDevice:
      return PointerInfo::Kind::device;
    case cudaMemoryTypeManaged:
      return PointerInfo::Kind::managed;
    default:
      return PointerInfo::Kind::host;
  }
}

/// Whether it is one of the default streams, which each thread and device has its own of.
bool isDefaultStream(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

}  // namespace

int CudaAccelerator::deviceCount(std::string* reason) const {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (succeeded(error) && count > 0) return count;
  if (error == cudaSuccess) error = cudaErrorNoDevice;
  *reason = fmt::format("cudaGetDeviceCount: {}: {}", inWords(error), hint(error));
  return 0;
}

int CudaAccelerator::currentDevice() const {
  int device = -1;
  checkCuda(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

void CudaAccelerator::setDevice(int device) const {
  checkCuda(cudaSetDevice(device), fmt::format("cudaSetDevice({})", device));
}

GpuInfo CudaAccelerator::info(int device) const { return gpuInfo(device); }

PointerInfo CudaAccelerator::inspect(const void* address) const {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  // How some drivers say that they do not know the address. Any other error is the GPU's own.
  if (error == cudaErrorInvalidValue) {
    succeeded(error);
    return {};
  }
  checkCuda(error, fmt::format("cudaPointerGetAttributes of {}", address));
  const PointerInfo::Kind kind = kindOf(attributes.type);
  return {.kind = kind, .device = kind == PointerInfo::Kind::host ? -1 : attributes.device};
}

int CudaAccelerator::deviceOf(GpuStream stream) const {
  if (isDefaultStream(stream)) return -1;
  int device = -1;
  checkCuda(cudaStreamGetDevice(stream, &device), "cudaStreamGetDevice",
            "Is the stream one of CUDA, and not destroyed?");
  return device;
}

void* CudaAccelerator::allocate(std::size_t bytes) {
  const RelaxedCapture relaxed;
  return allocations_.allocate(bytes);
}

bool CudaAccelerator::free(void* address) {
  const RelaxedCapture relaxed;
  return allocations_.free(address);
}

void CudaAccelerator::pin(void* address, std::size_t bytes) {
  const RelaxedCapture relaxed;
  pins_.pin(address, bytes);
}

void CudaAccelerator::unpin(void* address) noexcept {
  const RelaxedCapture relaxed;
  pins_.unpin(address);
}

std::shared_ptr<GpuBlock> CudaAccelerator::makeBlock(std::size_t bytes) {
  return std::make_shared<CudaBlock>(bytes);
}

std::unique_ptr<GpuRank> CudaAccelerator::makeRank(const GpuRankOptions& options) {
  return std::make_unique<CudaGpuRank>(opened_, allocations_, ranks_, options);
}

Accelerator::Activity CudaAccelerator::activity() { return ranks_.activity(); }

}  // namespace tutti
