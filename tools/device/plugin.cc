#include "tools/device/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "nccl.h"

namespace tutti::device {
namespace {

std::filesystem::path libraryFolder() {
  Dl_info tutti{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): dladdr asks for an address
  if (::dladdr(reinterpret_cast<void*>(&ncclGetVersion), &tutti) == 0 || tutti.dli_fname == nullptr)
    return {};
  return std::filesystem::path(tutti.dli_fname).parent_path();
}

}  // namespace

void* findPluginEntry(const std::string& library, const char* symbol, std::string* why) {
  const std::filesystem::path path = libraryFolder() / library;
  if (!std::filesystem::exists(path)) {
    *why =
        fmt::format("there is no {}: this build has no CUDA (configure with a CUDA toolkit)", path.string());
    return nullptr;
  }
  void* opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = opened == nullptr ? nullptr : ::dlsym(opened, symbol);
  if (entry == nullptr) *why = ::dlerror();
  return entry;
}

}  // namespace tutti::device
