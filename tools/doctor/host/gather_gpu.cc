// GPUs: what the system shows of them, how libtutti_cuda.so finds them, and a trial of CUDA IPC with a second
// process.
#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <regex>

#include "runtime/gpu_library.h"
#include "tools/doctor/host/cuda_runtime.h"
#include "tools/doctor/host/gather.h"
#include "tools/doctor/host/second_process.h"
#include "tools/doctor/system.h"

namespace tutti::doctor {
namespace {

constexpr const char* kNvidia = "0x10de";

/// Display controllers: VGA and 3D.
bool isGpu(const std::filesystem::path& device) {
  const std::string kind = firstLine(device / "class");
  return firstLine(device / "vendor") == kNvidia &&
         (kind.starts_with("0x0300") || kind.starts_with("0x0302"));
}

constexpr std::size_t kBytes = 4096;
constexpr unsigned kLazyPeerAccess = 1;  // cudaIpcMemLazyEnablePeerAccess
constexpr int kToHost = 2;               // cudaMemcpyDeviceToHost
constexpr int kToDevice = 1;             // cudaMemcpyHostToDevice
constexpr std::uint64_t kMark = 0x7475747469;

struct Answer {
  int error = 0;  ///< CUDA's
  std::uint64_t seen = 0;
};

/// Opens the memory that the first process offers, and reads it. Knows nothing of CUDA before.
void readOther(const SecondProcess::Pipe& pipe) {
  CudaRuntime::Handle handle{};
  if (!pipe.receive(handle)) return;
  std::string why;
  const CudaRuntime* const cuda = cudaRuntime(&why);
  if (cuda == nullptr) return;
  Answer answer;
  void* memory = nullptr;
  const auto then = [&](auto call) {
    if (answer.error == 0) answer.error = call();
  };
  then([&] { return cuda->set_device(0); });
  then([&] { return cuda->open_handle(&memory, handle, kLazyPeerAccess); });
  then([&] { return cuda->copy(&answer.seen, memory, sizeof(answer.seen), kToHost); });
  if (memory != nullptr) cuda->close_handle(memory);
  pipe.send(answer);
}

std::string tryIpc(const CudaRuntime& cuda, const SecondProcess& second) {
  void* memory = nullptr;
  CudaRuntime::Handle handle{};
  int error = cuda.set_device(0);
  if (error == 0) error = cuda.allocate(&memory, kBytes);
  if (error == 0) error = cuda.copy(memory, &kMark, sizeof(kMark), kToDevice);
  if (error != 0) return fmt::format("memory of GPU 0 could not be used: {}", cuda.error_text(error));
  std::string problem;
  Answer answer;
  if (error = cuda.get_handle(&handle, memory); error != 0) {
    problem = fmt::format("no handle for memory of GPU 0: {}", cuda.error_text(error));
  } else if (!second.pipe().send(handle) || !second.pipe().receive(answer)) {
    problem = "a second process did not answer when it opened memory of GPU 0";
  } else if (answer.error != 0) {
    problem =
        fmt::format("a second process could not open memory of GPU 0: {}", cuda.error_text(answer.error));
  } else if (answer.seen != kMark) {
    problem = "a second process opened memory of GPU 0, and read something else from it";
  }
  cuda.free(memory);
  return problem;
}

void findPeers(const CudaRuntime& cuda, GpuFacts& facts) {
  const int count = static_cast<int>(facts.gpus.size());
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      int there = 0;
      int back = 0;
      cuda.can_access_peer(&there, a, b);
      cuda.can_access_peer(&back, b, a);
      if (there == 0 || back == 0) facts.without_peers.push_back(fmt::format("{} and {}", a, b));
    }
  }
}

/// Of the libraries of CUDA, and trials with them.
void askCuda(GpuFacts& facts) {
  try {
    // A process that forks after CUDA has begun has no CUDA.
    const SecondProcess second(readOther);
    // Lives as long as the driver's threads may.
    static GpuLibrary library;
    Accelerator* const gpus = library.wanted(DeviceChoice::automatic, &facts.why_none);
    if (gpus == nullptr) return;
    const int count = gpus->deviceCount(&facts.why_none);
    for (int device = 0; device < count; ++device) {
      const GpuInfo info = gpus->info(device);
      facts.gpus.push_back(fmt::format("{} {}", info.bus_id.data(), info.name.data()));
    }
    const CudaRuntime* const cuda = cudaRuntime(&facts.ipc_problem);
    if (cuda == nullptr) return;
    cuda->driver_version(&facts.driver_cuda);
    cuda->runtime_version(&facts.runtime_cuda);
    findPeers(*cuda, facts);
    facts.ipc_problem = tryIpc(*cuda, second);
  } catch (const std::exception& error) {
    facts.why_none = error.what();
  }
}

}  // namespace

GpuFacts gatherGpu(DeviceChoice wanted) {
  GpuFacts facts;
  for (const auto& device : entriesOf("/sys/bus/pci/devices")) facts.pci_devices += isGpu(device) ? 1 : 0;
  const std::string version = firstLine("/proc/driver/nvidia/version");
  std::smatch number;
  if (std::regex_search(version, number, std::regex("[0-9]+\\.[0-9.]+"))) facts.driver = number.str();
  facts.is_open_driver = version.find("Open Kernel Module") != std::string::npos;
  facts.has_device_files = std::filesystem::exists("/dev/nvidia0");
  facts.has_peermem = !entriesOf("/sys/module/nvidia_peermem").empty();
  facts.is_emulated = std::getenv("TUTTI_EMULATED_GPUS") != nullptr;
  if (wanted != DeviceChoice::host) askCuda(facts);
  return facts;
}

}  // namespace tutti::doctor
