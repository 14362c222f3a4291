// What only a whole process shows about the emulated CUDA runtime: runtime_program SCENARIO [DIRECTORY].
// Exits with 0 when all was as expected; says what was not.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include <cuda_runtime.h>

#include "tests/cuda_emulator/runtime/kernels.cuh"

namespace tutti::test {
namespace {

int failures = 0;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "not as expected: %s\n", what.c_str());
}

void expectCode(cudaError_t got, cudaError_t expected, const std::string& what) {
  expect(got == expected,
         what + " returned " + cudaGetErrorName(got) + ", expected " + cudaGetErrorName(expected));
}

void expectOk(cudaError_t got, const std::string& what) { expectCode(got, cudaSuccess, what); }

int* allocateWords(std::size_t count) {
  int* words = nullptr;
  expectOk(cudaMalloc(&words, count * sizeof(int)), "cudaMalloc");
  expectOk(cudaMemset(words, 0, count * sizeof(int)), "cudaMemset");
  expectOk(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return words;
}

int readWord(const int* word) {
  int value = -1;
  expectOk(cudaMemcpy(&value, word, sizeof(int), cudaMemcpyDefault), "cudaMemcpy");
  return value;
}

int rank() { return std::atoi(std::getenv("RANK")); }

/// Messages between the ranks: files that appear whole.
class Mailbox {
 public:
  explicit Mailbox(std::string directory) : directory_(std::move(directory)) {}

  template <class T>
  void put(const std::string& name, const T& value) const {
    const auto path = directory_ + "/" + name;
    std::ofstream(path + ".part", std::ios::binary)
        .write(reinterpret_cast<const char*>(&value), sizeof(value));
    std::rename((path + ".part").c_str(), path.c_str());
  }

  template <class T>
  T take(const std::string& name) const {
    T value{};
    for (;;) {
      std::ifstream file(directory_ + "/" + name, std::ios::binary);
      if (file.read(reinterpret_cast<char*>(&value), sizeof(value))) return value;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::string directory_;
};

cudaIpcMemHandle_t exported(void* memory) {
  cudaIpcMemHandle_t handle{};
  expectOk(cudaIpcGetMemHandle(&handle, memory), "cudaIpcGetMemHandle");
  return handle;
}

cudaError_t openHandle(const cudaIpcMemHandle_t& handle, int** memory) {
  return cudaIpcOpenMemHandle(reinterpret_cast<void**>(memory), handle, cudaIpcMemLazyEnablePeerAccess);
}

int* imported(const cudaIpcMemHandle_t& handle) {
  int* memory = nullptr;
  expectOk(openHandle(handle, &memory), "cudaIpcOpenMemHandle");
  return memory;
}

/// Owns the memory; goes without a farewell.
void exportingRank(const Mailbox& mailbox) {
  int* const words = allocateWords(1000);
  storeWord<<<1, 1>>>(words + 999, 17);
  expectOk(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  mailbox.put("base", exported(words));
  mailbox.put("interior", exported(words + 500));
  awaitWord<<<1, 1>>>(words, 1);  // the other rank's kernel stores it
  expectOk(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  expectOk(cudaFree(words), "cudaFree");
  mailbox.put("freed", 1);
  int* const last = allocateWords(1);
  storeWord<<<1, 1>>>(last, 23);
  expectOk(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  mailbox.put("last", exported(last));
  mailbox.put("never opened", exported(allocateWords(1)));
  mailbox.put("pid", ::getpid());
  mailbox.take<int>("last opened");
  ::_exit(failures == 0 ? 0 : 1);
}

void importingRank(const Mailbox& mailbox) {
  expectOk(cudaSetDevice(1), "cudaSetDevice");
  const auto handle = mailbox.take<cudaIpcMemHandle_t>("base");
  int* const words = imported(handle);
  expect(imported(handle) == words, "a handle opened twice gives one address");
  expect(imported(mailbox.take<cudaIpcMemHandle_t>("interior")) == words,
         "an interior handle gives the base");
  expect(readWord(words + 999) == 17, "the owner's data is seen");
  cudaPointerAttributes attributes{};
  expectOk(cudaPointerGetAttributes(&attributes, words + 10), "cudaPointerGetAttributes");
  expect(attributes.type == cudaMemoryTypeDevice && attributes.device == 0,
         "imported memory is the owner's device's");
  expectCode(cudaFree(words), cudaErrorInvalidValue, "cudaFree of imported memory");
  cudaIpcMemHandle_t again{};
  expectCode(cudaIpcGetMemHandle(&again, words), cudaErrorInvalidValue,
             "cudaIpcGetMemHandle of imported memory");
  storeWord<<<1, 1>>>(words, 1);
  expectOk(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  mailbox.take<int>("freed");
  expect(readWord(words + 999) == 17, "imported memory outlives cudaFree");
  for (int opened = 0; opened < 3; ++opened) expectOk(cudaIpcCloseMemHandle(words), "cudaIpcCloseMemHandle");
  expectCode(cudaIpcCloseMemHandle(words), cudaErrorInvalidValue, "closing once too often");
  int* memory = nullptr;
  expectCode(openHandle(handle, &memory), cudaErrorMapBufferObjectFailed, "opening freed memory");

  const auto last_handle = mailbox.take<cudaIpcMemHandle_t>("last");
  int* last = imported(last_handle);
  expectOk(cudaDeviceReset(), "cudaDeviceReset");
  expectCode(cudaIpcCloseMemHandle(last), cudaErrorInvalidValue, "closing what a reset has closed");
  last = imported(last_handle);
  const auto never_opened = mailbox.take<cudaIpcMemHandle_t>("never opened");
  const auto owner = mailbox.take<pid_t>("pid");
  mailbox.put("last opened", 1);
  while (::access(("/proc/" + std::to_string(owner) + "/exe").c_str(), F_OK) == 0) std::this_thread::yield();
  expect(readWord(last) == 23, "imported memory outlives its owner");
  expectCode(openHandle(never_opened, &memory), cudaErrorMapBufferObjectFailed,
             "opening a dead process's memory");
  expectOk(cudaIpcCloseMemHandle(last), "cudaIpcCloseMemHandle");
}

void shareMemory(const std::string& directory) {
  const Mailbox mailbox(directory);
  rank() == 0 ? exportingRank(mailbox) : importingRank(mailbox);
}

void findNoIpc(const std::string& /*directory*/) {
  int* const words = allocateWords(1);
  cudaIpcMemHandle_t handle{};
  expectCode(cudaIpcGetMemHandle(&handle, words), cudaErrorNotSupported, "cudaIpcGetMemHandle");
  int* opened = nullptr;
  expectCode(openHandle(handle, &opened), cudaErrorNotSupported, "cudaIpcOpenMemHandle");
  expectOk(cudaFree(words), "cudaFree");
}

void findNoPeers(const std::string& /*directory*/) {
  int can = 1;
  expectOk(cudaDeviceCanAccessPeer(&can, 0, 1), "cudaDeviceCanAccessPeer");
  expect(can == 0, "no peer can be accessed");
  expectCode(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported, "cudaDeviceEnablePeerAccess");
}

void findNoDevice(const std::string& /*directory*/) {
  int count = -1;
  expectCode(cudaGetDeviceCount(&count), cudaErrorNoDevice, "cudaGetDeviceCount");
  expect(count == 0, "there is no device");
  void* memory = nullptr;
  expectCode(cudaMalloc(&memory, 1), cudaErrorNoDevice, "cudaMalloc");
}

void findSmallDevice(const std::string& /*directory*/) {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  expectOk(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  expect(total == 1 << 20, "the device has a mebibyte");
  void* memory = nullptr;
  expectCode(cudaMalloc(&memory, (1 << 20) + 1), cudaErrorMemoryAllocation, "cudaMalloc");
  expectOk(cudaMalloc(&memory, 1 << 20), "cudaMalloc");
  expectOk(cudaFree(memory), "cudaFree");
}

void leakEverything(const std::string& /*directory*/) {
  void* memory = allocateWords(25);
  expectOk(cudaMallocHost(&memory, 200), "cudaMallocHost");
  cudaStream_t stream = nullptr;
  expectOk(cudaStreamCreate(&stream), "cudaStreamCreate");
  cudaEvent_t event = nullptr;
  expectOk(cudaEventCreate(&event), "cudaEventCreate");
  cudaGraph_t graph = nullptr;
  expectOk(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
}

void leakNothing(const std::string& /*directory*/) { expectOk(cudaFree(allocateWords(25)), "cudaFree"); }

__global__ void readMisaligned(const char* bytes, int4* result) {
  *result = *reinterpret_cast<const int4*>(bytes + 4);
}

void failForGood(const std::string& /*directory*/) {
  int* const words = allocateWords(8);
  readMisaligned<<<1, 1>>>(reinterpret_cast<const char*>(words), reinterpret_cast<int4*>(words));
  const auto code = cudaDeviceSynchronize();
  expectCode(code, cudaErrorMisalignedAddress, "waiting for the kernel");
  void* memory = nullptr;
  expectCode(cudaMalloc(&memory, 1), code, "cudaMalloc after it");
  expectCode(cudaStreamSynchronize(nullptr), code, "cudaStreamSynchronize after it");
  expectCode(cudaGetLastError(), code, "cudaGetLastError");
  expectCode(cudaGetLastError(), code, "cudaGetLastError again");
  expectOk(cudaSetDevice(1), "cudaSetDevice");
  expectOk(cudaFree(allocateWords(1)), "the other device");
  expectOk(cudaSetDevice(0), "cudaSetDevice");
  expectOk(cudaDeviceReset(), "cudaDeviceReset");
  expectOk(cudaFree(allocateWords(1)), "the device after its reset");
}

/// A kernel that never ends does not keep the process from ending, nor does CUDA called by a static object.
void leaveKernelRunning(const std::string& /*directory*/) {
  struct CallsAtTheEnd {
    ~CallsAtTheEnd() { expectCode(cudaFree(nullptr), cudaSuccess, "cudaFree at the end"); }
  };
  static const CallsAtTheEnd calls;
  awaitWord<<<1, 32>>>(allocateWords(1), 1);
  expectOk(cudaGetLastError(), "the launch");
}

void resetDevice(const std::string& /*directory*/) {
  cudaStream_t stream = nullptr;
  expectOk(cudaStreamCreate(&stream), "cudaStreamCreate");
  cudaEvent_t event = nullptr;
  expectOk(cudaEventCreate(&event), "cudaEventCreate");
  void* pinned = nullptr;
  expectOk(cudaMallocHost(&pinned, 4096), "cudaMallocHost");
  static char own[4096];
  expectOk(cudaHostRegister(own, sizeof(own), cudaHostRegisterMapped), "cudaHostRegister");
  int* const word = allocateWords(1);
  storeWord<<<1, 1, 0, cudaStreamPerThread>>>(word, 1);
  expectOk(cudaDeviceReset(), "cudaDeviceReset");
  unsigned char resident = 0;
  expect(::mincore(pinned, 4096, &resident) == -1 && errno == ENOMEM, "pinned memory is unmapped");
  own[0] = 1;
  expectCode(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered, "what was registered");
  expectCode(cudaEventQuery(event), cudaErrorInvalidResourceHandle, "an event from before the reset");
  expectCode(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle, "a stream from before the reset");
  expectCode(cudaFree(word), cudaErrorInvalidValue, "memory from before the reset");
  int* const fresh = allocateWords(1);
  storeWord<<<1, 1, 0, cudaStreamPerThread>>>(fresh, 2);
  expectOk(cudaStreamSynchronize(cudaStreamPerThread), "the thread's stream after the reset");
  expect(readWord(fresh) == 2, "a kernel runs after the reset");
  expectOk(cudaFree(fresh), "cudaFree");
}

/// Its kernel must run, in however many forms the program holds it; prints what that returned.
void runKernel(const std::string& /*directory*/) {
  int* const word = allocateWords(1);
  storeWord<<<1, 1>>>(word, 5);
  const auto code = cudaGetLastError();
  std::printf("%s, %d\n", cudaGetErrorName(code), readWord(word));
  expectOk(cudaFree(word), "cudaFree");
}

void printUuid(const std::string& /*directory*/) {
  cudaDeviceProp properties{};
  expectOk(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  for (const char byte : properties.uuid.bytes) std::printf("%02x", static_cast<unsigned char>(byte));
  std::printf("\n");
}

using Scenario = void (*)(const std::string& directory);

const std::map<std::string, Scenario> kScenarios = {
    {"share-memory", shareMemory},
    {"no-ipc", findNoIpc},
    {"no-peers", findNoPeers},
    {"no-device", findNoDevice},
    {"small-device", findSmallDevice},
    {"leak", leakEverything},
    {"no-leak", leakNothing},
    {"fail-for-good", failForGood},
    {"run-kernel", runKernel},
    {"uuid", printUuid},
    {"kernel-left", leaveKernelRunning},
    {"reset", resetDevice},
};

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  const auto found = tutti::test::kScenarios.find(argc > 1 ? argv[1] : "");
  if (found == tutti::test::kScenarios.end()) return 2;
  found->second(argc > 2 ? argv[2] : ".");
  return tutti::test::failures == 0 ? 0 : 1;
}
