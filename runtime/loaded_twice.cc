#include "runtime/loaded_twice.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <exception>
#include <map>
#include <memory>
#include <vector>

namespace tutti {
namespace {

// The marks of a copy. Not an ncclX: a profiling tool may define those itself and call pncclX.
constexpr const char* kMarkOfNccl = "pncclGetVersion";
constexpr const char* kMarkOfTutti = "tuttiLaunchFromEnvironment";

/// Tells the file from others of its name, without loading it: tutti-run looks for the section.
[[gnu::used, gnu::section(".tutti")]] constexpr char kMarkOfFile[] = "Tutti";

struct File {
  const void* base = nullptr;
  std::string name;
};

File fileOf(const void* address) {
  Dl_info info{};
  if (address == nullptr || ::dladdr(address, &info) == 0) return {};
  return {info.dli_fbase, info.dli_fname != nullptr ? info.dli_fname : ""};
}

struct CloseHandle {
  void operator()(void* handle) const { ::dlclose(handle); }
};

std::vector<std::string> loadedFiles() {
  std::vector<std::string> names;
  const auto collect = [](dl_phdr_info* info, std::size_t, void* into) {
    try {
      static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
    } catch (const std::exception&) {
      return 1;  // without memory the rest is not looked at
    }
    return 0;
  };
  ::dl_iterate_phdr(collect, &names);
  return names;
}

/// Every loaded file that defines NCCL's functions, by its base address.
std::map<const void*, std::string> copies() {
  std::map<const void*, std::string> result;
  for (const std::string& name : loadedFiles()) {
    if (name.empty()) continue;  // the program itself
    const std::unique_ptr<void, CloseHandle> handle(::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    if (handle == nullptr) continue;
    // dlsym also looks at what the file depends on: the file is the one that has the function.
    const File file = fileOf(::dlsym(handle.get(), kMarkOfNccl));
    if (file.base != nullptr) result.emplace(file.base, file.name);
  }
  return result;
}

}  // namespace

OtherCopies findOtherCopies() {
  const File own = fileOf(reinterpret_cast<const void*>(&findOtherCopies));
  auto others = copies();
  others.erase(own.base);
  if (others.empty()) return {};
  const std::string& other = others.begin()->second;
  const File nccl = fileOf(::dlsym(RTLD_DEFAULT, kMarkOfNccl));
  const File tutti = fileOf(::dlsym(RTLD_DEFAULT, kMarkOfTutti));
  if (nccl.base != nullptr && tutti.base != nullptr && nccl.base != tutti.base) {
    return {
        fmt::format("two libraries with NCCL's functions are loaded, and this program's calls are divided "
                    "between them: ncclX is found in {}, tuttiX in {}. Neither knows communicators of the "
                    "other. Link one: Tutti::tutti (-ltutti) for a program that uses tutti/*.h, it has "
                    "ncclX too; else Tutti::nccl (-lnccl). See also LD_PRELOAD and what other libraries "
                    "of the program need (ldd)",
                    nccl.name, tutti.name),
        true};
  }
  return {fmt::format("two libraries with NCCL's functions are loaded, {} and {}; this is the first. Neither "
                      "knows communicators of the other. Link one: Tutti::tutti (-ltutti) or Tutti::nccl "
                      "(-lnccl)",
                      own.name, other),
          false};
}

}  // namespace tutti
