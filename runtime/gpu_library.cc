#include "runtime/gpu_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "runtime/core/renewed_in_child.h"
#include "runtime/process.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr const char* kLibrary = "libtutti_cuda.so";
constexpr const char* kCudaRuntime = "libcudart.so.13";

/// Beside the library that this code is in; beside the libraries of the build, for a program that it is in.
std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&candidates), &here) != 0 && here.dli_fname != nullptr) {
    const std::filesystem::path directory = std::filesystem::path(here.dli_fname).parent_path();
    paths.push_back((directory / kLibrary).string());
    paths.push_back((directory / "../lib" / kLibrary).string());
  }
  paths.emplace_back(kLibrary);
  return paths;
}

void* openLibrary(std::string* why) {
  for (const std::string& path : candidates()) {
    if (path != kLibrary && !std::filesystem::exists(path)) continue;
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
    *why = ::dlerror();
    if (path != kLibrary) return nullptr;
  }
  *why = fmt::format("{} is not there: this build has no CUDA ({})", kLibrary, *why);
  return nullptr;
}

}  // namespace

std::unique_ptr<const GpuLibrary::Found> GpuLibrary::look() {
  auto found = std::make_unique<Found>();
  void* library = openLibrary(&found->why_not);
  if (library == nullptr) return found;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dlsym knows no types
  const auto entry = reinterpret_cast<AcceleratorEntry>(::dlsym(library, kAcceleratorEntry));
  if (entry != nullptr) found->accelerator = entry(kAcceleratorVersion);
  if (found->accelerator != nullptr) {
    found->devices = found->accelerator->deviceCount(&found->why_not);
  } else {
    found->why_not = fmt::format("{} is of another version of Tutti than this library", kLibrary);
  }
  return found;
}

Accelerator* GpuLibrary::open(std::string* why) {
  const std::scoped_lock lock(*opening_);
  const Found* found = found_.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = look().release();
    found_.store(found, std::memory_order_release);
  }
  if (found->devices == 0) *why = found->why_not;
  return found->devices != 0 ? found->accelerator : nullptr;
}

void GpuLibrary::becomeChild() {
  renewInChild(opening_);
  graveyard_.becomeChild();
}

Accelerator* GpuLibrary::wanted(DeviceChoice choice, std::string* why) {
  if (choice == DeviceChoice::host) return nullptr;
  Accelerator* gpus = open(why);
  if (gpus == nullptr && choice == DeviceChoice::cuda) {
    throw Error(
        ncclUnhandledCudaError,
        fmt::format("TUTTI_DEVICE=cuda, but no GPU can be used: {}. TUTTI_DEVICE=auto or host works on "
                    "host memory",
                    *why));
  }
  return gpus;
}

Accelerator* GpuLibrary::opened() const {
  const Found* found = found_.load(std::memory_order_acquire);
  return found != nullptr && found->devices != 0 ? found->accelerator : nullptr;
}

GpuGraveyard& GpuLibrary::graveyard() {
  // The GPU gives back all memory of a process that ends; but where others have it open still, not too early.
  [[maybe_unused]] static const bool is_registered = std::atexit([] {
                                                       if (Process* process = Process::instanceAtExit())
                                                         process->gpus().graveyard_.awaitEmpty();
                                                     }) == 0;
  return graveyard_;
}

Accelerator* GpuLibrary::ifCudaIsUsed() {
  void* runtime = ::dlopen(kCudaRuntime, RTLD_NOW | RTLD_NOLOAD);
  if (runtime == nullptr) return opened();
  ::dlclose(runtime);
  std::string why;
  return open(&why);
}

}  // namespace tutti
