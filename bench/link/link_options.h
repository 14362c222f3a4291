// The command line of link_perf.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/link/transport.h"
#include "bench/sizes.h"
#include "tools/device/choice.h"

namespace tutti::perf {

struct LinkOptions {
  Medium medium = Medium::automatic;
  std::vector<std::string> rdma_devices;  ///< of rank 0 and rank 1, or of both; empty: the library chooses
  device::Choice device = device::Choice::automatic;
  SizeRange sizes{.min = 8, .max = std::size_t{64} << 20, .factor = 2};
  int iterations = 0;  ///< 0: by size
  int warmup = 5;
  bool bandwidth = true;
  bool latency = true;
  bool registered = true;
  bool gbits = false;
  int timeout_s = 0;  ///< per size and test; 0 = none
  std::string json_path;
  std::optional<std::size_t> corrupt;  ///< for tests: a received byte that is altered before the check
  std::vector<std::string> arguments;  ///< argv as given

  /// Timed messages of one size.
  std::size_t iterationsFor(std::size_t bytes) const;
};

/// What both ranks must be given alike: the flags, and their values in numbers (0 for a default, or "no").
inline constexpr std::array<const char*, 8> kSharedFlags{"-b", "-e", "-f",    "-n",
                                                         "-w", "-R", "-t bw", "-t lat"};
std::array<std::uint64_t, kSharedFlags.size()> sharedValues(const LinkOptions& options);

/// The options, or the status to exit with: 0 after --help, 2 after bad input. `speaks`: may print.
struct ParsedLinkOptions {
  std::optional<LinkOptions> options;
  int exit_status = 0;
};
ParsedLinkOptions parseLinkOptions(int argc, char** argv, bool speaks);

}  // namespace tutti::perf
