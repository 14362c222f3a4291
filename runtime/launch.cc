#include "runtime/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/bootstrap/id_source.h"
#include "runtime/core/types.h"
#include "runtime/core/unique_fd.h"
#include "runtime/process.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// How a launcher tells a process its rank.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
};

/// torchrun first: its processes may have been started through one of the others.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpirun (PMI)", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS"},
};

constexpr const char* kHintForOurs = "Start the program with tutti-run, or unset TUTTI_RANK";

bool isSet(const char* variable) { return std::getenv(variable) != nullptr; }

int number(const char* variable, int low, int high, std::string_view hint) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    throw Error(ncclInvalidUsage,
                fmt::format("{} is not set, but other variables of the launcher are. {}", variable, hint));
  }
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < low || value > high) {
    throw Error(ncclInvalidUsage,
                fmt::format("{}=\"{}\": expected a whole number from {} to {}", variable, text, low, high));
  }
  return value;
}

ncclUniqueId readId(const char* path) {
  ncclUniqueId id;
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), &id, sizeof(id)) : -1;
  const int error = errno;
  if (got != static_cast<ssize_t>(sizeof(id))) {
    throw Error(ncclSystemError,
                fmt::format("TUTTI_ID_FILE={}: {}. The launcher writes it, and removes it when it ends", path,
                            got >= 0 ? fmt::format("it holds {} bytes, a unique id has {}", got, sizeof(id))
                                     : std::strerror(error)));
  }
  return id;
}

/// The id that all ranks make from the address in their environment.
ncclUniqueId agreedId(Process& process, const Launcher& launcher, const tuttiLaunch_t& launch) {
  const NetworkSettings& network = process.settings().network;
  if (!network.comm_id.empty()) {
    return agreedUniqueId(network.comm_id, "NCCL_COMM_ID", network, process.log());
  }
  const char* host = std::getenv("MASTER_ADDR");
  if (host == nullptr || !isSet("MASTER_PORT")) {
    throw Error(
        ncclInvalidUsage,
        fmt::format("{} says that this is rank {} of {}, but {} is not set: where rank 0 listens must be "
                    "known to all ranks. Set NCCL_COMM_ID=HOST:PORT, or MASTER_ADDR and MASTER_PORT",
                    launcher.name, launch.rank, launch.nranks,
                    host == nullptr ? "MASTER_ADDR" : "MASTER_PORT"));
  }
  // The port itself belongs to torchrun's own store.
  const int port = number("MASTER_PORT", 1, 65534, "") + 1;
  const bool is_ipv6 = std::strchr(host, ':') != nullptr;
  const std::string where = is_ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
  return agreedUniqueId(where, "MASTER_ADDR", network, process.log());
}

tuttiLaunch_t launchOf(Process& process, const Launcher& launcher) {
  tuttiLaunch_t launch{};
  const std::string hint = fmt::format("{} sets {} and {}: start the program with it, or unset both",
                                       launcher.name, launcher.rank, launcher.size);
  launch.nranks = number(launcher.size, 1, kMaxRanks, hint);
  launch.rank = number(launcher.rank, 0, launch.nranks - 1, hint);
  launch.id = launch.nranks == 1 ? localUniqueId(process) : agreedId(process, launcher, launch);
  return launch;
}

tuttiLaunch_t launchOfOurs() {
  tuttiLaunch_t launch{};
  launch.nranks = number("TUTTI_WORLD_SIZE", 1, kMaxRanks, kHintForOurs);
  launch.rank = number("TUTTI_RANK", 0, launch.nranks - 1, kHintForOurs);
  const char* path = std::getenv("TUTTI_ID_FILE");
  if (path == nullptr) {
    throw Error(ncclInvalidUsage,
                "TUTTI_RANK is set, but TUTTI_ID_FILE is not. Start the program with tutti-run");
  }
  launch.id = readId(path);
  return launch;
}

}  // namespace

tuttiLaunch_t launchFromEnvironment(Process& process) {
  if (isSet("TUTTI_RANK") || isSet("TUTTI_WORLD_SIZE")) return launchOfOurs();
  for (const Launcher& launcher : kLaunchers) {
    if (isSet(launcher.rank)) return launchOf(process, launcher);
  }
  // Half of torchrun's variables, and nothing else to go by.
  if (isSet("WORLD_SIZE") && isSet("MASTER_ADDR")) return launchOf(process, kLaunchers[0]);
  return {.rank = 0, .nranks = 1, .id = localUniqueId(process)};
}

}  // namespace tutti
