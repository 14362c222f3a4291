// The command line of tutti-doctor.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "transports/socket_address.h"

namespace tutti::doctor {

inline constexpr std::uint16_t kDefaultPort = 29400;

enum class Task { host, environment, listen, peer };

struct Options {
  Task task = Task::host;
  bool json = false;
  std::uint16_t port = kDefaultPort;            ///< to listen on; 0: any
  HostAndPort peer;                             ///< where the other doctor listens
  std::string token;                            ///< hexadecimal; what the listener printed
  std::chrono::milliseconds patience{600'000};  ///< for a peer to come
};

/// Options, or what this process should end with because everything was said already (--help, bad input).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_status = 0;
};

/// Prints help and version to standard output, complaints to standard error (status 64).
ParsedOptions parseOptions(int argc, char** argv);

}  // namespace tutti::doctor
