// NVML, NVIDIA's library that tells of GPUs, as far as it is asked here. Opened at run time; declared here,
// so that nothing of NVIDIA is needed to build.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

/// What one NVLink of a GPU ends at.
struct NvmlLink {
  enum class End : std::uint8_t { gpu, nvswitch, other };
  End end = End::other;
  std::string bus_id;  ///< as NVML writes it; empty: not told
};

struct NvmlGpu {
  std::string bus_id;  ///< as NVML writes it: "00000000:3B:00.0"
  std::string model = {};
  int compute_capability = 0;        ///< 0: not told
  std::vector<NvmlLink> links = {};  ///< that are up
  int c2c_count = 0;                 ///< links to the CPU that are up
  double c2c_gbytes_per_s = 0;       ///< of each
};

struct NvmlView {
  std::vector<NvmlGpu> gpus;
  std::string problem;  ///< why there may be more GPUs, or links, than these; empty: nothing
};

/// `library`: by which name it is opened. Throws nothing.
NvmlView askNvml(const std::string& library);

}  // namespace tutti
