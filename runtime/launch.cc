#include "runtime/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/core/types.h"
#include "runtime/core/unique_fd.h"
#include "runtime/process.h"
#include "runtime/rendezvous.h"
#include "tutti/error.h"

namespace tutti {
namespace {

int number(const char* variable, int low, int high) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    throw Error(ncclInvalidUsage,
                fmt::format("{} is not set, but other variables of the launcher are. Start the "
                            "program with tutti-run, or unset TUTTI_RANK",
                            variable));
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

}  // namespace

tuttiLaunch_t launchFromEnvironment(Process& process) {
  if (std::getenv("TUTTI_RANK") == nullptr && std::getenv("TUTTI_WORLD_SIZE") == nullptr) {
    const Settings& settings = process.settings();
    return {.rank = 0, .nranks = 1, .id = openRendezvous(settings.bootstrap_port, settings.init_timeout)};
  }
  tuttiLaunch_t launch{};
  launch.nranks = number("TUTTI_WORLD_SIZE", 1, kMaxRanks);
  launch.rank = number("TUTTI_RANK", 0, launch.nranks - 1);
  const char* path = std::getenv("TUTTI_ID_FILE");
  if (path == nullptr) {
    throw Error(ncclInvalidUsage,
                "TUTTI_RANK is set, but TUTTI_ID_FILE is not. Start the program with tutti-run");
  }
  launch.id = readId(path);
  return launch;
}

}  // namespace tutti
