#include "tools/run/cuda_program.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "tools/run/elf_file.h"

namespace tutti::run {
namespace {

constexpr const char* kRuntime = "libcudart.so.13";
constexpr const char* kNccl = "libnccl.so.2";

/// Kernels are in it, and what registers them is, too: nvcc's default.
bool hasStaticRuntime(const ElfFile& program) {
  return program.hasSection(".nv_fatbin") && !program.lacks("__cudaRegisterFatBinary");
}

/// Another version of CUDA's runtime that it needs; empty where there is none.
std::string otherRuntime(const ElfFile& program) {
  for (const auto& library : program.needed) {
    if (library.starts_with("libcudart.so") && library != kRuntime) return library;
  }
  return {};
}

/// A library that is found before the emulated one; empty where there is none.
std::string libraryInRpath(const ElfFile& program) {
  for (const auto& folder : program.rpath) {
    for (const auto* const library : {kRuntime, kNccl}) {
      auto file = std::filesystem::path(folder) / library;
      std::error_code ignored;
      if (program.needs(library) && std::filesystem::exists(file, ignored)) return file.string();
    }
  }
  return {};
}

std::string refusalOf(const ElfFile& program) {
  if (hasStaticRuntime(program)) {
    return "it contains NVIDIA's CUDA runtime, linked statically as nvcc does by default, which cannot be "
           "stood in for. "
           "Link it with nvcc -cudart shared; in CMake, set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)";
  }
  if (const auto library = otherRuntime(program); !library.empty()) {
    return fmt::format("it needs {}, and the emulated CUDA runtime stands in for {}. Build it with CUDA 13",
                       library, kRuntime);
  }
  if (program.needs("libcuda.so.1")) {
    return "it needs libcuda.so.1, and CUDA's driver API is not emulated. Use the runtime API, or open the "
           "driver with "
           "dlopen where there is one";
  }
  if (const auto library = libraryInRpath(program); !library.empty()) {
    return fmt::format(
        "its RPATH finds {} before the emulated one. Link it with -Wl,--enable-new-dtags, or without "
        "that path",
        library);
  }
  return {};
}

/// NVIDIA's libraries with kernels of their own.
bool hasDeviceCode(const std::string& library) {
  constexpr std::string_view kStems[] = {"libcublas",   "libcudnn",    "libcufft",    "libcurand",
                                         "libcusolver", "libcusparse", "libcutensor", "libnvjpeg",
                                         "libnpp",      "libnvrtc",    "libnvshmem"};
  return std::any_of(std::begin(kStems), std::end(kStems),
                     [&](auto stem) { return library.starts_with(stem); });
}

/// Functions of NCCL that this program calls and Tutti, which is loaded here, does not have.
std::vector<std::string> missingFunctions(const ElfFile& program) {
  std::vector<std::string> missing;
  for (const auto& symbol : program.undefined) {
    const bool is_nccl = symbol.starts_with("nccl") || symbol.starts_with("pnccl");
    if (is_nccl && ::dlsym(RTLD_DEFAULT, symbol.c_str()) == nullptr) missing.push_back(symbol);
  }
  return missing;
}

}  // namespace

Verdict judgeForEmulation(const std::string& path) {
  const auto program = readElf(path);
  if (!program) return {};
  Verdict verdict{refusalOf(*program), {}};
  for (const auto& library : program->needed) {
    if (!hasDeviceCode(library)) continue;
    verdict.warnings.push_back(fmt::format(
        "it needs {}, whose kernels are machine code of real GPUs: calls of it will fail", library));
  }
  if (const auto missing = missingFunctions(*program); !missing.empty()) {
    verdict.warnings.push_back(
        fmt::format("it calls {}, which this version of Tutti does not have: it will end there, "
                    "or at its start where its symbols are bound then",
                    fmt::join(missing, ", ")));
  }
  return verdict;
}

}  // namespace tutti::run
