#include "tools/run/emulated_gpus.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace tutti::run {
namespace {

namespace fs = std::filesystem;

/// Where the stand-in for libcudart is, and Tutti's libraries, seen from the programs' directory.
struct Place {
  const char* emulator;
  const char* libraries;
};

/// In the build tree, and installed.
constexpr Place kPlaces[] = {{"../lib/cuda_emulator", "../lib"}, {TUTTI_EMULATOR_DIR, TUTTI_LIBRARY_DIR}};

/// What ranks search before all else. Another libnccl.so.2 that the system may have would find no GPU.
std::string searchPath() {
  const auto own = fs::read_symlink("/proc/self/exe").parent_path();
  for (const auto& place : kPlaces) {
    const auto emulator = (own / place.emulator).lexically_normal();
    const auto libraries = (own / place.libraries).lexically_normal();
    if (fs::exists(emulator / "libcudart.so.13")) return emulator.string() + ":" + libraries.string();
  }
  throw std::runtime_error(
      "--emulate-gpus: there is no emulated CUDA runtime beside this tutti-run; Tutti was built without "
      "CUDA. "
      "Build it where the CUDA toolkit is installed (no GPU is needed)");
}

}  // namespace

void emulateGpus(int count) {
  auto path = searchPath();
  const char* const rest = std::getenv("LD_LIBRARY_PATH");
  if (rest != nullptr && *rest != '\0') path.append(":").append(rest);
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  ::setenv("TUTTI_EMULATED_GPUS", std::to_string(count).c_str(), 1);
}

}  // namespace tutti::run
