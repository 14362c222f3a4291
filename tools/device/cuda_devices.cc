// GPUs, by the CUDA runtime. Becomes libtutti_programs_cuda.so.
#include "tools/device/cuda_devices.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "tools/device/plugin.h"
#include "tutti/error.h"

namespace tutti::device {
namespace {

void require(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  throw Error(ncclUnhandledCudaError,
              fmt::format("{}: {} ({})", what, cudaGetErrorString(result), cudaGetErrorName(result)));
}

class CudaGraph final : public Graph {
 public:
  /// Takes the graph over.
  explicit CudaGraph(cudaGraph_t graph) : graph_(graph) {
    require(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() override {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }

  void launch(cudaStream_t stream) override {
    require(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraph_t graph_;
  cudaGraphExec_t executable_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int number) : number_(number) { makeCurrent(); }

  Kind kind() const override { return Kind::cuda; }

  DeviceInfo info() const override {
    require(cudaSetDevice(number_), "cudaSetDevice");
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, number_), "cudaGetDeviceProperties");
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    require(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    return {.number = number_,
            .place = fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID,
                                 properties.pciDeviceID),
            .name = static_cast<const char*>(properties.name),
            .free_bytes = free_bytes};
  }

  void makeCurrent() override { require(cudaSetDevice(number_), "cudaSetDevice"); }

  void* allocate(std::size_t bytes) override {
    makeCurrent();
    void* data = nullptr;
    const cudaError_t result = cudaMalloc(&data, bytes);
    if (result == cudaErrorMemoryAllocation) cudaGetLastError();  // not sticky, but remembered
    require(result, fmt::format("cudaMalloc of {} bytes on device {}", bytes, number_).c_str());
    return data;
  }
  void free(void* data) noexcept override {
    cudaSetDevice(number_);
    cudaFree(data);
  }

  void fill(void* to, std::uint8_t value, std::size_t bytes, cudaStream_t stream) override {
    makeCurrent();
    require(cudaMemsetAsync(to, value, bytes, stream), "cudaMemsetAsync");
    synchronize(stream);
  }
  void copyIn(void* to, const void* from_host, std::size_t bytes, cudaStream_t stream) override {
    copy(to, from_host, bytes, cudaMemcpyHostToDevice, stream);
  }
  void copyOut(void* to_host, const void* from, std::size_t bytes, cudaStream_t stream) override {
    copy(to_host, from, bytes, cudaMemcpyDeviceToHost, stream);
  }

  cudaStream_t makeStream() override {
    makeCurrent();
    cudaStream_t stream = nullptr;
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
  }
  void destroyStream(cudaStream_t stream) noexcept override {
    cudaSetDevice(number_);
    cudaStreamDestroy(stream);
  }
  void synchronize(cudaStream_t stream) override {
    makeCurrent();
    require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  bool isDone(cudaStream_t stream) override {
    makeCurrent();
    const cudaError_t state = cudaStreamQuery(stream);
    if (state == cudaErrorNotReady) {
      cudaGetLastError();  // it is kept as if it were an error
      return false;
    }
    require(state, "cudaStreamQuery");
    return true;
  }

  void beginCapture(cudaStream_t stream) override {
    makeCurrent();
    // Other threads go on allocating and synchronizing meanwhile.
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  std::unique_ptr<Graph> endCapture(cudaStream_t stream) override {
    makeCurrent();
    cudaGraph_t graph = nullptr;
    require(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(graph);
  }

 private:
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    makeCurrent();
    require(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
    synchronize(stream);
  }

  int number_;
};

class CudaDevices final : public Devices {
 public:
  explicit CudaDevices(int count) : count_(count) {}

  Kind kind() const override { return Kind::cuda; }
  int count() const override { return count_; }
  std::unique_ptr<Device> open(int index) const override {
    return std::make_unique<CudaDevice>(index % count_);
  }

 private:
  int count_;
};

/// At the first call.
std::pair<cudaError_t, int> countDevices() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  return {result, count};
}

}  // namespace

extern "C" [[gnu::visibility("default")]] Devices* tuttiCudaDevices(int version, std::string* why) {
  if (version != kPluginVersion) {
    *why = "libtutti_programs_cuda.so is of another version of Tutti than this program";
    return nullptr;
  }
  static const auto [result, count] = countDevices();
  if (result != cudaSuccess || count == 0) {
    *why = result == cudaSuccess
               ? "the driver knows no device"
               : fmt::format("{} ({})", cudaGetErrorString(result), cudaGetErrorName(result));
    return nullptr;
  }
  static CudaDevices devices(count);
  return &devices;
}

}  // namespace tutti::device
