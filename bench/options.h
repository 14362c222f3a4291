// The command line of the programs: nccl-tests' flags, read into one value.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/collective.h"
#include "bench/sizes.h"
#include "nccl.h"
#include "tools/device/choice.h"

namespace tutti::perf {

/// How the times of the ranks become one figure (-a).
enum class Average { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };

/// What follows an operation in the timed loop (-z): all but kNone wait for it. Barriers are never timed.
enum class Blocking { kNone = 0, kBarrierPerOperation = 1, kWait = 2, kBarrierPerIteration = 3 };

/// For tests of the check itself (--corrupt): one bit of one received element is flipped before the check.
struct Corruption {
  int rank = -1;
  std::size_t index = 0;
};

struct Options {
  device::Choice device = device::Choice::automatic;
  int threads = 1;
  int gpus = 1;  ///< ranks of each thread
  SizeRange sizes;
  int iterations = 20;
  int aggregate = 1;
  int warmup = 1;
  int cycles = 1;  ///< 0 = until SIGINT
  int checks = 1;
  std::vector<ncclDataType_t> types{ncclFloat32};
  std::vector<ncclRedOp_t> ops{ncclSum};  ///< kMulSum among them
  int root = 0;                           ///< kAllRoots = every rank in turn
  Average average = Average::kMean;
  Blocking blocking = Blocking::kNone;
  bool cpu_time = false;
  bool timestamps = false;
  bool per_iteration = false;
  int skip = 0;  ///< iterations left out of the per-iteration figures
  bool memory_report = false;
  int unaligned = 0;        ///< elements by which buffers are shifted
  bool registered = false;  ///< buffers are registered with the communicator
  bool null_stream = false;
  int graph = 0;      ///< replays of the recorded operations; 0 = not recorded
  int timeout_s = 0;  ///< 0 = none
  std::string json_path;
  int launch = 0;  ///< ranks to start; 0 = this process is a rank
  std::optional<Corruption> corruption;
  std::vector<std::string> arguments;  ///< argv as given
  std::vector<std::string> notes;      ///< what a flag does not do here, for the table

  static constexpr int kAllRoots = -1;
};

/// The options, or the status to exit with: 0 after --help, 2 after bad input. `speaks` = may print (one rank
/// of a job says what is wrong, not all).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_status = 0;
};
ParsedOptions parseOptions(const Collective& collective, int argc, char** argv, bool speaks);

/// Leaves out, with a note, what such devices do not have.
void fitToDevices(Options& options, device::Kind kind);

/// Why these options cannot work on `count` such devices in each process; empty when they can.
std::string conflictWithDevices(const Options& options, device::Kind kind, int count);

/// Why these options cannot work with `nranks` ranks in a group; empty when they can.
std::string conflictWithGroup(const Options& options, const Collective& collective, int nranks);

/// Names as on the command line and in the table.
std::string typeName(ncclDataType_t type);
std::string opName(ncclRedOp_t op);

}  // namespace tutti::perf
