// Host memory: one device, the NULL stream, everything done when a call returns.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>

#include "tools/device/device.h"
#include "tools/device/host_memory.h"
#include "tutti/error.h"

namespace tutti::device {
namespace {

constexpr std::align_val_t kAlignment{256};

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(": ") + 2, line.size()));
  }
  return "CPU";
}

class HostDevice final : public Device {
 public:
  Kind kind() const override { return Kind::host; }
  DeviceInfo info() const override { return {.name = processorName(), .free_bytes = freeHostBytes()}; }
  void makeCurrent() override {}

  void* allocate(std::size_t bytes) override { return ::operator new(bytes, kAlignment); }
  void free(void* data) noexcept override { ::operator delete(data, kAlignment); }

  void fill(void* to, std::uint8_t value, std::size_t bytes, cudaStream_t /*stream*/) override {
    std::memset(to, value, bytes);
  }
  void copyIn(void* to, const void* from_host, std::size_t bytes, cudaStream_t /*stream*/) override {
    std::memcpy(to, from_host, bytes);
  }
  void copyOut(void* to_host, const void* from, std::size_t bytes, cudaStream_t /*stream*/) override {
    std::memcpy(to_host, from, bytes);
  }

  cudaStream_t makeStream() override { return nullptr; }
  void destroyStream(cudaStream_t /*stream*/) noexcept override {}
  void synchronize(cudaStream_t /*stream*/) override {}
  bool isDone(cudaStream_t /*stream*/) override { return true; }

  void beginCapture(cudaStream_t /*stream*/) override { refuseGraphs(); }
  std::unique_ptr<Graph> endCapture(cudaStream_t /*stream*/) override { refuseGraphs(); }

 private:
  [[noreturn]] static void refuseGraphs() {
    throw Error(ncclInvalidUsage, "there are no CUDA graphs in host memory");
  }
};

class HostDevices final : public Devices {
 public:
  Kind kind() const override { return Kind::host; }
  int count() const override { return 1; }
  std::unique_ptr<Device> open(int /*index*/) const override { return std::make_unique<HostDevice>(); }
};

}  // namespace

Devices& hostDevices() {
  static HostDevices devices;
  return devices;
}

}  // namespace tutti::device
