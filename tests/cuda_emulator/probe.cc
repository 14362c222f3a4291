#include "tests/cuda_emulator/probe.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tutti::emulator {
namespace {

/// Tests leave nothing in the user's own cache.
[[maybe_unused]] const int cache_chosen = setenv("TUTTI_EMULATOR_CACHE", TUTTI_PROBE_FOLDER "/cache", 0);

}  // namespace

std::string probePtx(const std::string& name, int architecture) {
  const std::string path =
      std::string(TUTTI_PROBE_FOLDER "/") + name + "_" + std::to_string(architecture) + ".ptx";
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<Module> loadProbe(const std::string& name, int architecture) {
  return Module::load(probePtx(name, architecture));
}

}  // namespace tutti::emulator
