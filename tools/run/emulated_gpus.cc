#include "tools/run/emulated_gpus.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace tutti::run {
namespace {

namespace fs = std::filesystem;

/// Where the stand-in for libcudart is, seen from the programs' directory: in the build tree, and installed.
constexpr const char* kPlaces[] = {"../lib/cuda_emulator", TUTTI_EMULATOR_DIR};

fs::path emulatorDirectory() {
  const auto own = fs::read_symlink("/proc/self/exe").parent_path();
  for (const auto* const place : kPlaces) {
    auto directory = (own / place).lexically_normal();
    if (fs::exists(directory / "libcudart.so.13")) return directory;
  }
  throw std::runtime_error(
      "--emulate-gpus: there is no emulated CUDA runtime beside this tutti-run; Tutti was built without "
      "CUDA. "
      "Build it where the CUDA toolkit is installed (no GPU is needed)");
}

}  // namespace

void emulateGpus(int count) {
  auto path = emulatorDirectory().string();
  const char* const rest = std::getenv("LD_LIBRARY_PATH");
  if (rest != nullptr && *rest != '\0') path.append(":").append(rest);
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  ::setenv("TUTTI_EMULATED_GPUS", std::to_string(count).c_str(), 1);
}

}  // namespace tutti::run
